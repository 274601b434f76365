package main

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/firnid/firn/server/internal/access/auth"
	"github.com/firnid/firn/server/internal/access/readfile"
)

func newToken(a *app) *cobra.Command {
	return parent(command("token", nil, nil), newTokenNew(a), newTokenList(a), newTokenRotate(a),
		newTokenRemove(a), newTokenHash(a))
}

func newTokenNew(a *app) *cobra.Command {
	var (
		e          auth.Entry
		role, file string
	)
	cmd := command("token new", noArgs, func(cmd *cobra.Command, _ []string) error {
		token, hash := auth.NewToken()
		e.SHA256, e.Role = []string{hash}, auth.Role(role)
		if err := e.Check(); err != nil {
			return misuse("the entry is made from the flags; see firn token new --help",
				"%s", strings.ReplaceAll(err.Error(), "\n", "; "))
		}
		if t := e.Ends(); !t.IsZero() && t.Before(time.Now()) {
			return misuse("", "--expires %s: it is in the past", e.Expires)
		}
		add := func(data []byte) ([]byte, error) { return auth.Add(data, file, &e) }
		if file != "" {
			if err := editTokens(file, e.Name, add); err != nil {
				return err
			}
		} else if text, err := add(nil); err == nil {
			fmt.Fprintf(a.stderr, "Add this entry to the list tokens: in the token file:\n\n%s\n",
				strings.TrimSuffix(strings.TrimPrefix(string(text), "---\ntokens:\n"), "...\n"))
		}
		fmt.Fprintln(a.stdout, token)
		return nil
	})
	f := cmd.Flags()
	f.StringVar(&e.Name, "name", "", "`NAME` of the entry, for logs")
	f.StringVar(&role, "role", "", "`ROLE`: generate, read or admin")
	f.StringSliceVar(&e.Sequencers, "sequencers", nil, "`NAMES` of sequencers, or patterns with one * (default all)")
	f.StringVar(&e.Expires, "expires", "",
		"`TIME` at which the token expires, such as 2027-01-01T00:00:00Z (default never)")
	f.Var(&e.Rate, "rate", "IDs a second that it may take from each server, such as 50k/s (default any)")
	f.Var(&e.Burst, "burst", "IDs that it may take at once (default those of a second)")
	f.Var(&e.RequestRate, "request-rate", "requests for IDs a second that it may send to each server (default any)")
	f.Var(&e.Max, "max", "IDs that it may take in a request (default any)")
	f.StringVar(&file, "file", "", "token `FILE` to add the entry to")
	complete(cmd, "role", wordsOf("generate", "read", "admin"))
	return cmd
}

func newTokenHash(a *app) *cobra.Command {
	return command("token hash", noArgs, func(cmd *cobra.Command, _ []string) error {
		line, _ := bufio.NewReader(a.stdin).ReadString('\n')
		token := strings.TrimSpace(line)
		if token == "" {
			return misuse("give one line with a token, such as: firn token hash <token.txt", "no token on stdin")
		}
		fmt.Fprintln(a.stdout, auth.Hash(token))
		return nil
	})
}

// newTokenList makes the command that lists a token file.
func newTokenList(a *app) *cobra.Command {
	var file string
	var asJSON bool
	cmd := command("token list", noArgs, func(*cobra.Command, []string) error {
		data, err := readfile.Read(file)
		if err != nil {
			return err
		}
		all, err := auth.Entries(data, file)
		if err != nil {
			return err
		}
		return a.printTokens(all, asJSON)
	})
	tokenFileVar(cmd, &file)
	jsonVar(cmd, &asJSON)
	return cmd
}

// tokenFileVar adds --file, which is required.
func tokenFileVar(cmd *cobra.Command, file *string) {
	textVar(cmd, file, "file", "FILE", "token file, as of firn serve --tokens")
	require(cmd, "file")
}

// printTokens prints entries.
func (a *app) printTokens(all []*auth.Entry, asJSON bool) error {
	l := a.list(asJSON, "NAME", "ROLE", "CREDENTIAL", "SEQUENCERS", "CREATE", "EXPIRES", "LIMITS")
	for _, e := range all {
		v := e.JSON(a.now())
		expires := cmp.Or(v.Expires, "never")
		if v.Expired {
			expires += " (expired)"
		}
		credential := v.Certificate
		for i, hash := range e.SHA256 { // the beginning is enough for people to recognize it
			credential += []string{"token ", ", new token "}[i] + hash[:8] + "…"
		}
		names := cmp.Or(strings.Join(e.Sequencers, ","), "all")
		l.add(v, e.Name, string(e.Role), credential, names, strconv.FormatBool(v.Create), expires, e.Quota.String())
	}
	return l.end("the file has no entries; firn token new adds one")
}

// newTokenRotate makes the command that replaces a token.
func newTokenRotate(a *app) *cobra.Command {
	return changeEntry("token rotate", func(file, name string) error {
		token, hash := auth.NewToken()
		err := editTokens(file, name, func(data []byte) ([]byte, error) { return auth.Rotate(data, file, name, hash) })
		if err != nil {
			return err
		}
		a.note("the old token of %s remains valid until firn token remove %s --old --file %s", name, name, file)
		fmt.Fprintln(a.stdout, token)
		return nil
	})
}

// newTokenRemove makes the command that removes entries and old tokens.
func newTokenRemove(*app) *cobra.Command {
	var old bool
	cmd := changeEntry("token remove", func(file, name string) error {
		return editTokens(file, name, func(data []byte) ([]byte, error) {
			if old {
				return auth.RemoveOld(data, file, name)
			}
			return auth.Remove(data, file, name)
		})
	})
	cmd.Flags().BoolVar(&old, "old", false, "remove only the replaced token")
	return cmd
}

// changeEntry returns a command that changes an entry of an existing file.
func changeEntry(path string, change func(file, name string) error) *cobra.Command {
	var file string
	cmd := command(path, wantArgs("the name of the entry", 1, 1), func(_ *cobra.Command, args []string) error {
		if _, err := readfile.Read(file); err != nil {
			return err
		}
		return change(file, args[0])
	})
	tokenFileVar(cmd, &file)
	return cmd
}

// editTokens changes a token file; name is the name of the entry.
func editTokens(file, name string, change func([]byte) ([]byte, error)) error {
	err := auth.EditFile(file, change)
	var path *fs.PathError
	hint := "nothing was changed"
	switch {
	case err == nil:
		return nil
	case errors.Is(err, auth.ErrNoEntry):
		return refused("run firn token list --file "+file+" for its entries", "%s has no entry %q", file, name)
	case errors.Is(err, auth.ErrExists):
		err = fmt.Errorf("%s: %q: %w", file, name, err)
		hint = fmt.Sprintf("give it a new token with firn token rotate %s --file %s; nothing was changed", name, file)
	case errors.Is(err, auth.ErrRotated):
		hint = fmt.Sprintf("run firn token remove %s --old --file %s once no client has the old token", name, file)
	case errors.Is(err, fs.ErrExist):
		hint = "if no other firn token command is running, remove it"
	case errors.As(err, &path) && path.Op == "chown":
		hint = "run the command as the owner of the file, or as root; nothing was changed"
	}
	return failed(hint, "%w", err)
}
