#!/bin/sh
# Runs the Python rows of docs/digits.md.
set -eu
command -v python3 >/dev/null || exit 3
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"

python3 -m venv v
v/bin/pip install -q --disable-pip-version-check pandas==3.1.1 numpy==2.4.6 polars==2.1.0 pyarrow==26.0.1 \
	duckdb==2.0.1 orjson==3.13.0 ujson==6.1.0 simplejson==4.3.0 msgpack==1.2.4 openpyxl==3.1.5 \
	xlsxwriter==3.3.1 djangorestframework==3.18.3 Django==5.2.19 pydantic==2.14.4 protobuf==7.36.2 jq==1.13.0 \
	lxml==6.1.3 csvkit==2.2.0 deepdiff==9.1.0 numexpr==2.14.2 igraph==1.0.0

cat >main.py <<'END'
import io, json, platform, subprocess, warnings, zipfile
from importlib.metadata import version
import duckdb, jq, lxml.etree, msgpack, numpy as np, openpyxl, orjson, pandas as pd, polars as pl, pyarrow as pa
import igraph, numexpr, pyarrow.csv, pydantic, simplejson, sqlite3, ujson, xlsxwriter
from deepdiff import DeepDiff
from google.protobuf import json_format, struct_pb2, wrappers_pb2

warnings.simplefilter("ignore")
A = 1179183313482456071
N, JSON, BIG = A - 1, f'{{"id":{A}}}', 2**63


def show(v):
    if isinstance(v, float):
        return f"float {v!r}".replace("np.float64(", "").rstrip(")")
    return " ".join(str(v).split())


def row(what, of, got, exact=""):
    try:
        got = got()
    except Exception as e:
        got = f"error {type(e).__name__}"
    print(what, version(of) if of else platform.python_version(), show(got), exact() if exact else "", sep="\t", flush=True)


def csv(text, **options):
    return pd.read_csv(io.StringIO(text), **options)


hole = f"id,x\n{A},1\n,2\n"
row("json.loads, int", "", lambda: json.loads(JSON)["id"])
row("json.loads of n.0", "", lambda: json.loads(f"{A}.0"), lambda: json.loads(f"{A}"))
row("int(float(text))", "", lambda: int(float(str(A))), lambda: int(str(A)))
row("n / 1", "", lambda: A / 1, lambda: A // 1)
row("n == float(n-1)", "", lambda: A == float(N))
row("orjson, ujson, simplejson, msgpack", "orjson", lambda: {orjson.loads(JSON)["id"], ujson.loads(JSON)["id"], simplejson.loads(JSON)["id"], msgpack.unpackb(msgpack.packb(A))}.pop())
row("orjson loads of 2^64", "orjson", lambda: orjson.loads(str(2**64)), lambda: orjson.loads(str(A)))
row("pandas read_csv", "pandas", lambda: csv(f"id\n{A}\n").id[0])
row("pandas read_csv, a cell is empty", "pandas", lambda: csv(hole).id[0], lambda: csv(hole, dtype={"id": "Int64"}).id[0])
row("pandas convert_dtypes after that", "pandas", lambda: csv(hole).convert_dtypes().id[0], lambda: csv(hole, dtype_backend="numpy_nullable").id[0])
row("pandas read_csv, engine pyarrow, a cell is empty", "pandas", lambda: csv(hole, engine="pyarrow").id[0], lambda: csv(hole, engine="pyarrow", dtype_backend="pyarrow").id[0])
row("pandas read_json of a quoted ID", "pandas", lambda: pd.read_json(io.StringIO(f'[{{"id":"{A}"}}]')).id[0])
row("pandas read_json, one ID is null", "pandas", lambda: pd.read_json(io.StringIO(f'[{{"id":{A}}},{{"id":null}}]')).id[0], lambda: pd.read_json(io.StringIO(f'[{{"id":"{A}"}},{{"id":null}}]'), dtype={"id": "Int64"}).id[0])
row("pandas read_json(orient='index'), IDs are keys", "pandas", lambda: pd.read_json(io.StringIO(f'{{"{A}":{{"x":1}}}}'), orient="index").index[0], lambda: pd.read_json(io.StringIO(f'{{"{A}":{{"x":1}}}}'), orient="index", convert_axes=False).index[0])
left, right = pd.DataFrame({"id": [A]}), csv(f"id\n{N}\n{A}\n{A + 1}\n\n", skip_blank_lines=False)
row("pandas merge by int64 and float64, neighbours", "pandas", lambda: f"{len(left.merge(right, on='id'))} rows for 1 ID", lambda: left.merge(right.assign(id=[N, A, A + 1, 0]), on="id").id[0])
unsigned = pd.DataFrame({"id": np.array([A, N], "uint64")})
row("pandas merge by int64 and uint64, unsorted neighbours", "pandas", lambda: f"{len(left.merge(unsigned, on='id'))} rows for 1 ID", lambda: left.merge(unsigned.astype("int64"), on="id").id[0])
row("pandas shift, reindex, concat with a missing row", "pandas", lambda: pd.Series([A, N]).shift(1)[1], lambda: pd.Series([A, N], dtype="Int64").shift(1)[1])
mixed = pd.DataFrame({"id": [A], "price": [0.5]})
row("pandas iterrows, loc[0], beside a float column", "pandas", lambda: next(mixed.iterrows())[1].id, lambda: next(mixed.itertuples()).id)
row("pandas apply(axis=1), beside a float column", "pandas", lambda: mixed.apply(lambda r: r.id, axis=1).astype("int64")[0], lambda: mixed.id.map(lambda v: v)[0])
row("pandas to_json of a float column", "pandas", lambda: csv(hole).to_json(orient="values"), lambda: csv(hole, dtype={"id": "Int64"}).to_json(orient="values"))


def excel(id, engine="openpyxl"):
    f = io.BytesIO()
    pd.DataFrame({"id": [id]}).to_excel(f, engine=engine)
    return pd.read_excel(f).id[0]


row("pandas to_excel, read_excel", "pandas", lambda: excel(A), lambda: excel(str(A)))
i, u = np.array([A], "int64"), np.array([N], "uint64")
row("numpy concatenate of int64 and uint64", "numpy", lambda: np.concatenate([i, u])[0], lambda: np.concatenate([i, u.astype("int64")])[0])
row("numpy intersect1d of int64 n, uint64 n-1", "numpy", lambda: np.intersect1d(i, u), lambda: "" if len(np.intersect1d(i, u.astype("int64"))) else A)
row("numpy array([n, 2^63])", "numpy", lambda: np.array([A, BIG])[0], lambda: np.array([A, BIG], "uint64")[0])
row("numpy loadtxt", "numpy", lambda: np.loadtxt(io.StringIO(str(A))).item(), lambda: np.loadtxt(io.StringIO(str(A)), dtype="int64"))
row("numpy uint64 + int64", "numpy", lambda: (np.array([A], "uint64") + np.array([0]))[0], lambda: (i + np.array([0]))[0])
row("numexpr max of int64", "numexpr", lambda: numexpr.evaluate("max(i)", {"i": i}), lambda: i.max())
row("numpy median, mean, quantile", "numpy", lambda: np.median(i), lambda: np.sort(i)[len(i) // 2])
row("polars read_csv, a cell is empty", "polars", lambda: pl.read_csv(io.StringIO(hole))["id"][0])
row("polars filter(id == float(n))", "polars", lambda: pl.DataFrame({"id": [N]}).filter(pl.col("id") == float(A))["id"].to_list(), lambda: pl.DataFrame({"id": [A]}).filter(pl.col("id") == A)["id"][0])
row("polars to_pandas with a null", "polars", lambda: pl.DataFrame({"id": [A, None]}).to_pandas().id[0], lambda: pl.DataFrame({"id": [A, None]}).to_pandas(use_pyarrow_extension_array=True).id[0])
row("pyarrow CSV, one value from 2^63 on", "pyarrow", lambda: pa.csv.read_csv(io.BytesIO(f"id\n{A}\n{BIG}\n".encode()))["id"][0].as_py(), lambda: pa.csv.read_csv(io.BytesIO(f"id\n{A}\n{BIG}\n".encode()), convert_options=pa.csv.ConvertOptions(column_types={"id": pa.uint64()}))["id"][0].as_py())
table = pa.table({"id": [A, None]})
row("pyarrow to_pandas with a null", "pyarrow", lambda: table.to_pandas().id[0], lambda: table.to_pandas(types_mapper=pd.ArrowDtype).id[0])
row("duckdb df() with a NULL", "duckdb", lambda: duckdb.sql(f"select unnest([{A}, NULL]) id").df().id[0])


def sheet(engine, id):
    f = io.BytesIO()
    if engine == "openpyxl":
        book = openpyxl.Workbook()
        book.active.append([id])
        book.save(f)
    else:
        book = xlsxwriter.Workbook(f, {"strings_to_numbers": False})
        book.add_worksheet().write(0, 0, id)
        book.close()
    with zipfile.ZipFile(f) as z:
        text = z.read("xl/worksheets/sheet1.xml").decode()
        return text.split("<v>")[1].split("</v>")[0] if isinstance(id, int) else openpyxl.load_workbook(f).active["A1"].value


row("openpyxl write of an int", "openpyxl", lambda: sheet("openpyxl", A), lambda: sheet("openpyxl", str(A)))
row("xlsxwriter write of an int", "xlsxwriter", lambda: sheet("xlsxwriter", A), lambda: sheet("xlsxwriter", str(A)))


class Order(pydantic.BaseModel):
    id: int


class Strict(pydantic.BaseModel, strict=True):
    id: int


row("pydantic int, from 1.179183313482456e18", "pydantic", lambda: Order.model_validate_json('{"id":1.179183313482456e18}').id, lambda: Strict.model_validate_json(JSON).id)
row("protobuf MessageToJson of an int64", "protobuf", lambda: json_format.MessageToJson(wrappers_pb2.Int64Value(value=A)))
row("protobuf json_format.Parse of 1.179183313482456e18", "protobuf", lambda: json_format.Parse("1.179183313482456e18", wrappers_pb2.Int64Value()).value, lambda: json_format.Parse(str(A), wrappers_pb2.Int64Value()).value)


def struct(v):
    s = struct_pb2.Struct()
    s["id"] = v
    return json_format.MessageToDict(s)["id"]


row("protobuf Struct", "protobuf", lambda: struct(A), lambda: struct(str(A)))
import django.conf

django.conf.settings.configure(USE_THOUSAND_SEPARATOR=True, USE_I18N=True)
django.setup()
from django.template import Context, Engine
from rest_framework.renderers import JSONRenderer

page = lambda text: Engine(libraries={"l10n": "django.templatetags.l10n"}).from_string(text).render(Context({"id": A}))
row("Django template with USE_THOUSAND_SEPARATOR", "Django", lambda: page("{{ id }}"), lambda: page("{% load l10n %}{{ id|unlocalize }}"))
row("Django REST framework response", "djangorestframework", lambda: JSONRenderer().render({"id": A}).decode(), lambda: JSONRenderer().render({"id": str(A)}).decode())
row("DeepDiff ignore_numeric_type_changes of n, n-1", "deepdiff", lambda: DeepDiff([A], [N], ignore_numeric_type_changes=True) or "no difference", lambda: DeepDiff([A], [N])["values_changed"]["root[0]"]["old_value"])
open("ids.csv", "w").write(f"id\n{A}\n")
row("csvjson (csvkit)", "csvkit", lambda: subprocess.check_output(["v/bin/csvjson", "ids.csv"], text=True), lambda: subprocess.check_output(["v/bin/csvjson", "-I", "ids.csv"], text=True).strip())
ask = lambda q: jq.compile(q).input_text(str(A)).text()
row("jq.py .", "jq", lambda: ask("."), lambda: ask("tostring"))


def graphml(id):
    graph = igraph.Graph(1)
    graph.vs["name"] = [id]
    graph.write("ids.graphml", format="graphml")
    return igraph.Graph.Read("ids.graphml", format="graphml").vs[0]["name"]


row("igraph write and read of GraphML", "igraph", lambda: graphml(A), lambda: graphml(str(A)))
xml = lxml.etree.fromstring(f"<id>{A}</id>")
row("XPath number(/id) (lxml)", "lxml", lambda: xml.xpath("number(/id)"), lambda: xml.xpath("string(/id)"))
row("XPath /id = n-1 (lxml)", "lxml", lambda: xml.xpath(f"/id = {N}"), lambda: "" if xml.xpath(f"/id = '{N}'") else A)
END
v/bin/python main.py 2>python.log
