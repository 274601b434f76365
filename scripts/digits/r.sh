#!/bin/sh
# Runs the R rows of docs/digits.md, with readr, jsonlite and data.table if they are installed.
set -eu
command -v Rscript >/dev/null || exit 3
exec Rscript --vanilla - <<'END'
A <- "1179183313482456071"; N <- "1179183313482456070"
row <- function(what, of, got, exact = "") cat(what, if (of == "R") paste0(R.version$major, ".", R.version$minor) else as.character(packageVersion(of)), paste(got, collapse = ", "), exact, sep = "\t", "\n")
have <- function(p) suppressPackageStartupMessages(suppressWarnings(require(p, character.only = TRUE, quietly = TRUE)))
full <- function(x) format(x, digits = 22)
file <- tempfile(); writeLines(c("id", A, N), file)
d <- read.csv(file); text <- read.csv(file, colClasses = "character")
row("read.csv of n, n-1", "R", full(d$id), text$id[1])
row("print of it", "R", format(d$id[1]), text$id[1])
row("unique of it", "R", paste(length(unique(d$id)), "ID"), unique(text$id)[1])
row("merge by n, n-1", "R", paste(nrow(merge(d, d, by = "id")), "rows, not 2"), merge(text, text, by = "id")$id[2])
row("as.integer of the text", "R", suppressWarnings(as.integer(A)))
if (have("readr")) row("readr read_csv", "readr", full(read_csv(file, show_col_types = FALSE)$id[1]), read_csv(file, col_types = "c")$id[1])
if (have("jsonlite")) {
  json <- paste0("[", A, "]")
  row("jsonlite fromJSON", "jsonlite", full(fromJSON(json)), fromJSON(json, bigint_as_char = TRUE))
  row("jsonlite toJSON of a number", "jsonlite", toJSON(d$id[1]), toJSON(text$id[1]))
}
if (have("data.table") && have("bit64")) {
  id <- fread(file)$id
  row("data.table fread", "data.table", as.character(id[1]))
  row("bit64 integer64 in ifelse, sapply, for, as.matrix", "bit64", ifelse(TRUE, id[1], id[1]), as.character(fifelse(TRUE, id[1], id[1])))
  row("c(1, integer64)", "bit64", c(1, id[1]), as.character(c(as.integer64(1), id[1])[2]))
  row("integer64 / 1L", "bit64", full(id[1] / 1L), as.character(id[1] %/% 1L))
}
END
