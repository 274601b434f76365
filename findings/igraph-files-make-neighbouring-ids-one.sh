#!/bin/sh
# igraph (Python): a graph that was written to a file has one name for several
# vertices.
#
# Package: igraph 1.0.0 (PyPI; run with Python 3.11).
# Guess: an attribute of ints is written as it is printed: GraphML has the type
#   long, which NetworkX uses, and GML and Pajek are texts.
# Behaviour: numbers are doubles in the files and have 15 digits, so they lose
#   more than a double does: 19-digit IDs up to 10,000 apart become one, and
#   IDs below 2^53 change too. In GraphML, GML and Pajek all names are equal
#   then, without a warning. A pickle keeps the ints, and texts are kept by all.
# Seen 2026-11-29: three vertices with neighbouring IDs have one name each in
#   GraphML, GML and Pajek; a 16-digit ID below 2^53 comes back as another. With
#   NetworkX 3.6.1 GraphML and GEXF keep the three.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"

python3 -m venv v
v/bin/pip install -q --disable-pip-version-check igraph==1.0.0 networkx==3.6.1

cat >main.py <<'EOF'
import warnings

import igraph
import networkx

warnings.simplefilter("error")


def back(ids, format):
    graph = igraph.Graph(edges=[(0, 1), (1, 2)])
    graph.vs["name"] = ids
    graph.write("x." + format, format=format)
    return igraph.Graph.Read("x." + format, format=format).vs["name"]


n = 1179183313482456071
ids = [n, n + 1, n + 2]
for format in ("graphml", "gml", "pajek", "pickle"):
    names = back(ids, format)
    print(f"igraph {format}: {len(set(names))} of 3 names,", names[0])
    print(f"  as texts: {len(set(back([str(id) for id in ids], format)))} of 3 names")
js = 2**52 + 7
print(f"igraph graphml: {js} is {back([js] * 3, 'graphml')[0]:.0f}")

graph = networkx.path_graph(ids)
for format in ("graphml", "gexf"):
    getattr(networkx, "write_" + format)(graph, "y." + format)
    nodes = getattr(networkx, "read_" + format)("y." + format, node_type=int).nodes
    print(f"networkx {format}:", "the same three" if set(nodes) == set(ids) else set(nodes))
EOF
cat >want <<'EOF'
igraph graphml: 1 of 3 names, 1.17918331348246e+18
  as texts: 3 of 3 names
igraph gml: 1 of 3 names, 1.17918331348246e+18
  as texts: 3 of 3 names
igraph pajek: 1 of 3 names, 1.17918331348246e+18
  as texts: 3 of 3 names
igraph pickle: 3 of 3 names, 1179183313482456071
  as texts: 3 of 3 names
igraph graphml: 4503599627370503 is 4503599627370500
networkx graphml: the same three
networkx gexf: the same three
EOF

v/bin/python main.py >got
cat got
diff want got >&2 || { echo "igraph-files-make-neighbouring-ids-one: no longer holds" >&2; exit 1; }
