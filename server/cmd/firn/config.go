package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/firnid/firn/sequencer"
	"github.com/firnid/firn/server/internal/access/readfile"
	"github.com/firnid/firn/server/internal/ids/textfmt"
	"github.com/firnid/firn/server/internal/operate/config"
	"github.com/firnid/firn/server/stores"
)

// configEnv is the environment variable with the default of --config.
const configEnv = "FIRN_CONFIG"

// A configKey is a key of firn.yaml, and the flag of serve that it sets.
type configKey struct{ key, flag string }

// configKeys are all keys. The flag has the documentation, the default and the
// check; it has the key's name, with - for the dot, or the one behind =.
var configKeys = func(text string) (all []configKey) {
	for word := range strings.FieldsSeq(text) {
		key, flag, ok := strings.Cut(word, "=")
		if !ok {
			flag = strings.ReplaceAll(key, ".", "-")
		}
		all = append(all, configKey{key, flag})
	}
	return all
}(`
	listen listen-http listen-grpc listen-resp advertise
	store wait-for-store node nodes layout max-ahead create-on-first-use allow-clock-behind allow-clock-ahead
	tls.cert tls.key tls.client-ca=client-ca tls.require-client-cert=require-client-cert
	tokens forward-to forward-token veil-keys insecure allow-host
	limits.connections=max-connections limits.sequencers=max-sequencers limits.ids-per-call=max-ids-per-call
	limits.body=max-body limits.header=max-header limits.request-timeout=request-timeout limits.read-timeout=read-timeout
	limits.write-timeout=write-timeout limits.idle-timeout=idle-timeout limits.resp-idle-timeout=resp-idle-timeout
	resp.integers drain.delay drain.timeout log.format log.level issue-log tracing.endpoint`)

// envOf returns the environment variable of a key.
func envOf(key string) string {
	return "FIRN_" + strings.ToUpper(strings.NewReplacer(".", "_", "-", "_").Replace(key))
}

// unknownVars returns the variables that may be mistyped ones of keys: not the
// one that node names.
func unknownVars(environ []string, node string) []string {
	known := []string{configEnv, strings.TrimPrefix(node, "env:")}
	for _, k := range configKeys {
		known = append(known, envOf(k.key))
	}
	return config.UnknownVars(environ, known)
}

// configHint says where to find the valid keys.
const configHint = "run firn config print for all keys and their meanings"

// readConfig reads a file.
func readConfig(path string) (*config.File, error) {
	data, err := readfile.ReadTrusted(path)
	if err != nil {
		return nil, failed("check --config, or "+configEnv, "%w", err)
	}
	known := make([]string, len(configKeys))
	for i, k := range configKeys {
		known[i] = k.key
	}
	f, err := config.Parse(data, path, known)
	if err != nil {
		return nil, misuse(configHint, "%w", err)
	}
	return f, nil
}

// applyConfig sets flags from the environment and a file, unless they were
// given.
func applyConfig(flags *pflag.FlagSet, f *config.File, getenv func(string) string) (origin, faults) {
	from := make(origin)
	var all faults
	for _, k := range configKeys {
		flag, file, env := flags.Lookup(k.flag), f.Setting(k.key), getenv(envOf(k.key))
		values, o := []string{env}, writtenAt{where: envOf(k.key)}
		switch {
		case flag.Changed:
			continue
		case env != "" && (k.key != "store" || file.Line != 0): // FIRN_STORE is used only without --store
		case file.Line != 0:
			values, o = file.Values, writtenAt{where: fmt.Sprintf("%s:%d", f.Name, file.Line), line: file.Line}
		default:
			continue
		}
		o.text = strings.Join(values, ",")
		from[k.key] = o
		var err error
		if list, isList := flag.Value.(pflag.SliceValue); isList && o.line != 0 {
			// Each value is used as written, including commas.
			err, flag.Changed = list.Replace(values), true
		} else if len(values) == 1 {
			err = flags.Set(k.flag, o.text)
		} else {
			err = errors.New("it must be a single value")
		}
		if err != nil {
			all.add(k.flag, o.text, "", "%s", wrongValue(flag, err))
		}
	}
	return from, all
}

// load sets flags that were not given from the environment and the file at
// path; "" means none.
func (s *serveCmd) load(flags *pflag.FlagSet, path string, getenv func(string) string) (all faults, err error) {
	var f *config.File
	s.configPath, s.getenv = path, getenv
	if path != "" {
		if f, err = readConfig(path); err != nil {
			return nil, err
		}
		s.file.Store(f)
	}
	s.from, all = applyConfig(flags, f, getenv)
	s.badLayout = slices.ContainsFunc(all, func(e *exitError) bool { return e.flag == "layout" })
	if s.listenOnly != [3]string{} && !flags.Changed("listen") {
		s.listen = nil
	}
	return all, nil
}

// reloadConfig reloads the configuration, if it is in a file, and logs the
// result.
func (s *serveCmd) reloadConfig(log *slog.Logger) {
	if s.file.Load() == nil {
		return
	}
	switch restart, err := s.reload(); {
	case err != nil:
		log.Error("invalid configuration: keeping the previous one", "error", err)
	case len(restart) > 0:
		log.Warn("configuration reloaded: templates and log.level apply now, other keys after a restart", "keys",
			strings.Join(restart, " "))
	default:
		log.Info("configuration reloaded: templates apply to sequencers that are not in use yet, log.level applies now")
	}
}

// reload reads the file again and applies what can change while the server
// runs: the templates, and the level of the log. It returns the keys that need
// a restart.
func (s *serveCmd) reload() (restart []string, err error) {
	// All values must be valid, or nothing of the file is applied.
	to, flags := serveFlags()
	if err := flags.Parse(s.args); err != nil {
		return nil, err
	}
	all, err := to.load(flags, s.configPath, s.getenv)
	if err != nil {
		return nil, err
	}
	all = append(append(all, to.checkValues()...), to.checkNodes(false)...)
	if err := all.error(to.from); err != nil {
		return nil, err
	}
	old, f := s.file.Load(), to.file.Load()
	for _, k := range configKeys {
		if k.key != "log.level" && !slices.Equal(old.Setting(k.key).Values, f.Setting(k.key).Values) {
			restart = append(restart, k.key)
		}
	}
	s.setLevel(to.logLevel)
	s.file.Store(f)
	return restart, nil
}

// template applies the template of a name.
func (s *serveCmd) template(name string, c *sequencer.Options) error {
	f := s.file.Load()
	if f == nil {
		return nil
	}
	t, err := f.Template(name)
	t.Apply(c)
	return err
}

func newConfig(a *app) *cobra.Command {
	return parent(command("config", nil, nil), newConfigCheck(a), newConfigPrint(a), newConfigImport(a))
}

func newConfigCheck(a *app) *cobra.Command {
	return command("config check", wantArgs("FILE", 1, 1), func(cmd *cobra.Command, args []string) error {
		s, flags := serveFlags()
		all, err := s.load(flags, args[0], func(string) string { return "" })
		if exitCode(err) == exitFailed {
			return err
		}
		if err == nil {
			_, more := s.check(false)
			err = append(append(all, more...), s.checkFiles()...).error(s.from)
		}
		if exit, ok := errors.AsType[*exitError](err); ok {
			return refused(exit.hint, "%w", exit.err)
		}
		f := s.file.Load()
		fmt.Fprintf(a.stdout, "%s is valid: %s and %s for sequencers\n", args[0], textfmt.Count(len(f.Settings), "key"),
			textfmt.Count(len(f.Templates), "template"))
		return nil
	})
}

// serveFlags returns a serve command that is not run.
func serveFlags() (*serveCmd, *pflag.FlagSet) {
	s := newServeCmd()
	cmd := &cobra.Command{Use: "serve"}
	s.flags(cmd)
	return s, cmd.Flags()
}

// serveSettings returns the settings of a serve command with this file, this
// store and the variables; "" leaves them out.
func (a *app) serveSettings(file, store string) (*serveCmd, error) {
	s, flags := serveFlags()
	if store != "" {
		if err := flags.Set("store", store); err != nil {
			return nil, misuse("", "--store: %w", err)
		}
	}
	wrong, err := s.load(flags, cmp.Or(file, a.getenv(configEnv)), a.getenv)
	return s, cmp.Or(err, wrong.error(s.from))
}

func newConfigPrint(a *app) *cobra.Command {
	return command("config print", wantArgs("FILE", 0, 1), func(cmd *cobra.Command, args []string) error {
		s, flags := serveFlags()
		all, err := s.load(flags, strings.Join(args, ""), a.getenv)
		if err := cmp.Or(err, all.error(s.from)); err != nil {
			return err
		}
		for _, name := range unknownVars(os.Environ(), s.node) {
			a.note("unknown environment variable %s", name)
		}
		printConfig(a.stdout, flags, s.file.Load(), s.from)
		return nil
	})
}

// printConfig prints all keys.
func printConfig(w io.Writer, flags *pflag.FlagSet, f *config.File, from origin) {
	fmt.Fprintln(w, "# Configuration of firn serve. Keys that are commented out have their defaults.")
	group := ""
	for _, k := range configKeys {
		flag := flags.Lookup(k.flag)
		_, usage := pflag.UnquoteUsage(flag)
		above, name, nested := strings.Cut(k.key, ".")
		indent := ""
		if !nested {
			name = k.key
		} else if indent = "  "; above != group {
			group = above
			fmt.Fprintf(w, "\n%s:\n", above)
		}
		fmt.Fprintf(w, "\n%s# %s\n", indent, usage)
		if set := from[k.key]; set.where != "" {
			if k.key == "store" {
				set.text = stores.Redact(set.text)
			}
			fmt.Fprintf(w, "%s%s: %q # %s\n", indent, name, set.text, set.where)
		} else if byDefault := strings.Trim(flag.DefValue, `"[]`); byDefault != "" {
			fmt.Fprintf(w, "%s# %s: %q\n", indent, name, byDefault)
		} else {
			fmt.Fprintf(w, "%s# %s:\n", indent, name)
		}
	}
	fmt.Fprint(w,
		"\n# Templates for sequencers that are created when they are first used: by name, by pattern,\n"+
			"# or default. A mistyped name creates one too, unless create-on-first-use is false.\n")
	if f == nil || len(f.Templates) == 0 {
		fmt.Fprint(w,
			"# sequencers:\n#   default: {layout: default}\n"+
				"#   \"orders-*\": {layout: hazelcast, max-ahead: 15s, window: 60s, nodes: 0..511}\n")
		return
	}
	fmt.Fprint(w, f.Sequencers)
}

func newConfigImport(a *app) *cobra.Command {
	return command("config import", wantArgs("FILE", 1, 1), func(cmd *cobra.Command, args []string) error {
		data, err := readfile.Read(args[0])
		if err != nil {
			return err
		}
		i, err := config.ImportHazelcast(data, args[0], a.now())
		if err != nil {
			return refused("", "%w", err)
		}
		fmt.Fprint(a.stdout, i.YAML)
		for _, text := range i.Notes {
			a.note("%s", text)
		}
		return nil
	})
}
