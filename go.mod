module github.com/firnid/firn

go 1.26
