#!/bin/sh
# Runs the rows of docs/digits.md in LibreOffice Calc, which opens and saves a CSV file.
set -eu
command -v soffice >/dev/null || exit 3
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
A=1179183313482456071
version=$(soffice --version 2>/dev/null | cut -d ' ' -f 2)

# saved CELL TYPE [FILTER] saves a CSV file with CELL as CSV, and prints the cell again.
saved() {
	printf '%s\n' "$1" >in.csv
	soffice "-env:UserInstallation=file://$dir/profile" --headless --infilter="CSV:44,34,76,1,${3-}" --convert-to "$2" --outdir out in.csv >office.log 2>&1
}
row() { printf '%s\t%s\t%s\t%s\n' "$1" "$version" "$2" "${3-}"; }
saved "$A" csv
got=$(cat out/in.csv)
saved "$A" csv 1/2
row 'LibreOffice, CSV opened and saved as CSV' "$got" "$(cat out/in.csv)"
saved "$A" xlsx
got=$(unzip -p out/in.xlsx xl/worksheets/sheet1.xml | sed -n 's/.*<v>\(.*\)<\/v>.*/\1/p')
saved "$A" xlsx 1/2
row 'LibreOffice, CSV opened and saved as xlsx' "$got" "$(unzip -p out/in.xlsx xl/sharedStrings.xml | sed -n 's/.*<t [^>]*>\(.*\)<\/t>.*/\1/p')"
saved '"=""'$A'"""' csv '1/1/1033/false/true/false/false/false/true'
row 'LibreOffice, CSV cell ="n"' "$(cat out/in.csv)"
saved "'$A" csv
row "LibreOffice, CSV cell 'n" "$(cat out/in.csv)"
