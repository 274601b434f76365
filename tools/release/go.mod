// Makes releases. A module of its own, as the packagers need many others; not
// published and not in go.work.
module github.com/firnid/firn/tools/release

go 1.26.0
