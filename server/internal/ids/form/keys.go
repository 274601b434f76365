package form

import (
	"bytes"
	"fmt"
	"os"
	"runtime"

	"github.com/firnid/firn/server/internal/access/readfile"
	"github.com/firnid/firn/server/internal/ids/textfmt"
	"github.com/firnid/firn/veil"
)

// WarnOfReaders warns if other users can read a file of keys. Windows has no
// such modes.
func WarnOfReaders(path string, warn func(string)) {
	info, err := os.Stat(path)
	if err == nil && runtime.GOOS != "windows" && info.Mode().IsRegular() && info.Mode().Perm()&0o007 != 0 {
		warn(fmt.Sprintf("%s is readable by other users (mode %04o), who can then unveil and forge "+
			"IDs: run chmod 640 %[1]s", path, info.Mode().Perm()))
	}
}

// ReadKeys reads a file of keys; "" has none.
func ReadKeys(path string) (veil.Keys, error) {
	if path == "" {
		return veil.Keys{}, nil
	}
	text, err := readfile.ReadTrusted(path)
	if err != nil {
		return veil.Keys{}, err
	}
	// Half of a longer key would be another key.
	last := text[bytes.LastIndexByte(text, '\n')+1:]
	key := bytes.TrimSpace(last[bytes.IndexByte(last, ':')+1:])
	if len(bytes.TrimSpace(last)) > 0 && last[0] != '#' && len(key) < 64 {
		return veil.Keys{}, fmt.Errorf("%s: the last line has fewer than 64 hexadecimal digits and does not end with a "+
			"newline: it may be incomplete", path)
	}
	keys, err := veil.ParseKeys(string(text))
	return keys, textfmt.Plain(err)
}
