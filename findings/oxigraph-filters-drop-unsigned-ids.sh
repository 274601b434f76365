#!/bin/sh
# Oxigraph: a FILTER on an integer drops the rows above 2^63, and one of them
# changes the order of all.
#
# Packages: pyoxigraph 0.5.13, rdflib 7.6.0 for comparison (PyPI).
# Guess: xsd:integer has no limit in RDF, so a 64-bit unsigned ID is compared
#   like each other number, or the query fails.
# Behaviour: an xsd:integer above 2^63 - 1 is stored as a literal that is not a
#   number. <, > and != on it are errors, and an error in FILTER drops the row.
#   ORDER BY falls back to comparing texts. SUM has no value. rdflib is right.
# Seen 2026-11-28: of four IDs FILTER(?id > 0) finds three, and ORDER BY puts
#   1844... before 5; rdflib finds four, in order.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"

python3 -m venv v
v/bin/pip install -q --disable-pip-version-check pyoxigraph==0.5.13 rdflib==7.6.0

cat >main.py <<'EOF'
import pyoxigraph
import rdflib

INTEGER = "http://www.w3.org/2001/XMLSchema#integer"
ids = ["5", "10", "1179183313482456071", "18446744073709551615"]
queries = [
    "SELECT ?id { ?s <http://x/id> ?id FILTER(?id > 0) }",
    "SELECT ?id { ?s <http://x/id> ?id } ORDER BY ?id",
    "SELECT (SUM(?id) AS ?n) { ?s <http://x/id> ?id }",
]

store = pyoxigraph.Store()
graph = rdflib.Graph()
for id in ids:
    node = pyoxigraph.NamedNode
    literal = pyoxigraph.Literal(id, datatype=node(INTEGER))
    store.add(pyoxigraph.Quad(node("http://x/" + id), node("http://x/id"), literal))
    uri = rdflib.URIRef
    graph.add((uri("http://x/" + id), uri("http://x/id"), rdflib.Literal(id, datatype=uri(INTEGER))))

for query in queries:
    print(query)
    found = [row[0].value if row[0] else None for row in store.query(query)]
    print("  oxigraph", found if "ORDER" in query else sorted(found, key=str))
    found = [str(row[0]) for row in graph.query(query)]
    print("  rdflib  ", found if "ORDER" in query else sorted(found))
EOF
cat >want <<'EOF'
SELECT ?id { ?s <http://x/id> ?id FILTER(?id > 0) }
  oxigraph ['10', '1179183313482456071', '5']
  rdflib   ['10', '1179183313482456071', '18446744073709551615', '5']
SELECT ?id { ?s <http://x/id> ?id } ORDER BY ?id
  oxigraph ['10', '1179183313482456071', '18446744073709551615', '5']
  rdflib   ['5', '10', '1179183313482456071', '18446744073709551615']
SELECT (SUM(?id) AS ?n) { ?s <http://x/id> ?id }
  oxigraph [None]
  rdflib   ['19625927387192007701']
EOF

v/bin/python main.py >got
cat got
diff want got >&2 || { echo "oxigraph-filters-drop-unsigned-ids: no longer holds" >&2; exit 1; }
