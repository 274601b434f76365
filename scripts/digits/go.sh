#!/bin/sh
# Runs the Go rows of docs/digits.md.
set -eu
command -v go >/dev/null || exit 3
dir=$(mktemp -d)
cd "$dir"

export GOWORK=off GOFLAGS=-mod=mod
trap 'code=$?; test $code = 0 || cat go.log >&2; rm -rf "$dir"' EXIT
go mod init digits 2>go.log
go get github.com/bytedance/sonic@v1.15.5 github.com/json-iterator/go@v1.1.12 github.com/goccy/go-json@v0.12.0 \
	github.com/go-viper/mapstructure/v2@v2.5.0 github.com/spf13/viper@v1.21.0 github.com/tidwall/gjson@v1.20.2 \
	google.golang.org/protobuf@v1.36.12 gopkg.in/yaml.v3@v3.0.1 github.com/goccy/go-yaml@v1.19.2 \
	github.com/BurntSushi/toml@v1.6.0 github.com/vmihailenco/msgpack/v5@v5.4.1 github.com/fxamacker/cbor/v2@v2.10.0 \
	github.com/stretchr/testify@v1.12.1 github.com/itchyny/gojq@v0.12.17 github.com/mikefarah/yq/v4@v4.54.3 \
	github.com/xuri/excelize/v2@v2.11.1 2>>go.log

cat >main.go <<'END'
package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os/exec"
	"runtime"
	"runtime/debug"
	"strings"
	"text/template"

	"github.com/BurntSushi/toml"
	"github.com/bytedance/sonic"
	"github.com/fxamacker/cbor/v2"
	mapstructure "github.com/go-viper/mapstructure/v2"
	gojson "github.com/goccy/go-json"
	goyaml "github.com/goccy/go-yaml"
	"github.com/itchyny/gojq"
	jsoniter "github.com/json-iterator/go"
	"github.com/spf13/viper"
	"github.com/stretchr/testify/assert"
	"github.com/tidwall/gjson"
	"github.com/vmihailenco/msgpack/v5"
	"github.com/xuri/excelize/v2"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/types/known/structpb"
	"google.golang.org/protobuf/types/known/wrapperspb"
	"gopkg.in/yaml.v3"
)

const (
	A    int64 = 1179183313482456071
	text       = "1179183313482456071"
	doc        = `{"id":1179183313482456071}`
)

var versions = map[string]string{"": strings.TrimPrefix(runtime.Version(), "go")}

func show(v any) string {
	if f, ok := v.(float64); ok {
		return fmt.Sprintf("float64 %.0f", f)
	}
	return strings.TrimSpace(fmt.Sprint(v))
}

func row(what, of string, got any, exact ...any) {
	fmt.Println(strings.Join([]string{what, versions[of], show(got), strings.TrimSpace(strings.Trim(fmt.Sprint(exact...), "[]"))}, "\t"))
}

func id(unmarshal func([]byte, any) error, data string) any {
	var v map[string]any
	if err := unmarshal([]byte(data), &v); err != nil {
		return err
	}
	return v["id"]
}

func field(unmarshal func([]byte, any) error, data string) any {
	var v struct{ ID int64 `json:"id"` }
	if err := unmarshal([]byte(data), &v); err != nil {
		return err
	}
	return v.ID
}

type quiet struct{}

func (quiet) Errorf(string, ...any) {}

func main() {
	info, _ := debug.ReadBuildInfo()
	for _, m := range info.Deps {
		versions[m.Path] = strings.TrimPrefix(m.Version, "v")
	}
	row("encoding/json into any", "", id(json.Unmarshal, doc), field(json.Unmarshal, doc))
	row("text/template of encoding/json into any", "", func() any {
		var b bytes.Buffer
		template.Must(template.New("").Parse("{{.}}")).Execute(&b, id(json.Unmarshal, doc))
		return b.String()
	}(), field(json.Unmarshal, doc))
	row("sonic into any", "github.com/bytedance/sonic", id(sonic.Unmarshal, doc), field(sonic.Unmarshal, doc))
	row("jsoniter into any", "github.com/json-iterator/go", id(jsoniter.Unmarshal, doc), field(jsoniter.Unmarshal, doc))
	row("goccy/go-json into any", "github.com/goccy/go-json", id(gojson.Unmarshal, doc), field(gojson.Unmarshal, doc))
	into := func(v any) int64 {
		var m struct{ ID int64 }
		mapstructure.Decode(map[string]any{"id": v}, &m)
		return m.ID
	}
	row("mapstructure from JSON into int64", "github.com/go-viper/mapstructure/v2", into(id(json.Unmarshal, doc)), into(json.Number(text)))
	row("mapstructure from JSON into int64, 2^63-1", "github.com/go-viper/mapstructure/v2", into(id(json.Unmarshal, `{"id":9223372036854775807}`)), into(json.Number(text)))
	v := viper.New()
	v.SetConfigType("json")
	v.ReadConfig(strings.NewReader(doc))
	y := viper.New()
	y.SetConfigType("yaml")
	y.ReadConfig(strings.NewReader("id: " + text))
	row("viper GetInt64 of a JSON file", "github.com/spf13/viper", v.GetInt64("id"), y.GetInt64("id"))
	row("viper GetString of a JSON file", "github.com/spf13/viper", v.GetString("id"), y.GetString("id"))
	list := `[{"id":1179183313482456070},{"id":1179183313482456071}]`
	row("gjson #(id==n).id, finds n-1", "github.com/tidwall/gjson", gjson.Get(list, "#(id=="+text+").id").Raw, gjson.Get(list, "1.id").Int())
	row("gjson Int, String", "github.com/tidwall/gjson", gjson.Get(doc, "id").Int())
	row("gjson Float, Value", "github.com/tidwall/gjson", gjson.Get(doc, "id").Value(), gjson.Get(doc, "id").Int())
	var w wrapperspb.Int64Value
	protojson.Unmarshal([]byte("1.179183313482456e18"), &w)
	row("protojson of 1.179183313482456e18", "google.golang.org/protobuf", w.Value)
	protojson.Unmarshal([]byte(text), &w)
	row("protojson of a number", "google.golang.org/protobuf", w.Value)
	s, _ := structpb.NewStruct(map[string]any{"id": A})
	t, _ := structpb.NewStruct(map[string]any{"id": text})
	row("structpb.NewStruct", "google.golang.org/protobuf", s.Fields["id"].GetNumberValue(), t.Fields["id"].GetStringValue())
	row("yaml.v3 into any", "gopkg.in/yaml.v3", id(yaml.Unmarshal, "id: "+text))
	row("goccy/go-yaml into any", "github.com/goccy/go-yaml", id(goyaml.Unmarshal, "id: "+text))
	row("toml into any", "github.com/BurntSushi/toml", id(toml.Unmarshal, "id = "+text))
	packed, _ := msgpack.Marshal(map[string]any{"id": A})
	row("msgpack into any", "github.com/vmihailenco/msgpack/v5", id(msgpack.Unmarshal, string(packed)))
	packed, _ = cbor.Marshal(map[string]any{"id": A})
	row("cbor into any", "github.com/fxamacker/cbor/v2", id(cbor.Unmarshal, string(packed)))
	row("testify JSONEq of n, n-1", "github.com/stretchr/testify", assert.JSONEq(quiet{}, "[1179183313482456071]", "[1179183313482456070]"))
	query := func(q string, in any) any {
		code, _ := gojq.Parse(q)
		v, _ := code.Run(in).Next()
		return v
	}
	row("gojq . * 1.0", "github.com/itchyny/gojq", query(". * 1.0", int(A)), query(". * 1", int(A)))
	f := excelize.NewFile()
	f.SetCellValue("Sheet1", "A1", A)
	cell, _ := f.GetCellValue("Sheet1", "A1")
	f.SetCellValue("Sheet1", "A1", text)
	exact, _ := f.GetCellValue("Sheet1", "A1")
	row("excelize SetCellValue(int64), GetCellValue", "github.com/xuri/excelize/v2", cell, exact)
	yq := func(args ...string) any {
		c := exec.Command("./yq", args...)
		c.Stdin = strings.NewReader(doc)
		out, _ := c.CombinedOutput()
		return string(out)
	}
	out, _ := exec.Command("go", "list", "-m", "-f", "{{.Version}}", "github.com/mikefarah/yq/v4").Output()
	versions["yq"] = strings.TrimSpace(strings.TrimPrefix(string(out), "v"))
	row("yq -p json .id", "yq", yq("-p", "json", ".id"), yq("-p", "yaml", ".id"))
}
END
go mod tidy 2>>go.log
go get github.com/mikefarah/yq/v4@v4.54.3 2>>go.log
go build -o yq github.com/mikefarah/yq/v4
go run .
