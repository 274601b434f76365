package main

import (
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

// newTokenList makes the command that lists a token file.
func newTokenList(a *app) *cobra.Command {
	var file string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "list --file FILE",
		Short: "List the entries of a token file",
		Long: `List shows the entries of a token file: what each may do, its number of tokens, and when
it expires.

  firn token list --file tokens.yaml

An entry with two tokens is being rotated: see firn token rotate.`,
		Example: "  firn token list --file tokens.yaml\n  firn token list --file tokens.yaml --json",
		Args:    noArgs,
		RunE: func(*cobra.Command, []string) error {
			data, err := readTokens(file)
			if err != nil {
				return err
			}
			all, err := auth.Entries(data, file)
			if err != nil {
				return failed("", "%w", err)
			}
			return a.printTokens(all, asJSON)
		},
	}
	tokenFileVar(cmd, &file)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object per line")
	return cmd
}

// tokenFileVar adds --file, which is required.
func tokenFileVar(cmd *cobra.Command, file *string) {
	cmd.Flags().Var(&value[string]{file, notEmpty, nil, "FILE"}, "file", "token file, as of firn serve --tokens")
	require(cmd, "file")
}

// tokenJSON is an entry in JSON.
type tokenJSON struct {
	Name        string    `json:"name"`
	Role        auth.Role `json:"role"`
	SHA256      []string  `json:"sha256,omitempty"`
	Certificate string    `json:"certificate,omitempty"`
	Sequencers  []string  `json:"sequencers,omitempty"` // empty means all
	Create      bool      `json:"create"`
	Expires     string    `json:"expires,omitempty"`
	Expired     bool      `json:"expired"`
}

// printTokens prints entries.
func (a *app) printTokens(all []auth.Entry, asJSON bool) error {
	l := a.list(asJSON, "NAME", "ROLE", "CREDENTIAL", "SEQUENCERS", "CREATE", "EXPIRES")
	for _, e := range all {
		v := tokenJSON{
			Name: e.Name, Role: e.Role, SHA256: e.Hashes, Certificate: e.Certificate, Sequencers: e.Sequencers, Create: !e.NoCreate,
			Expired: !e.Expires.IsZero() && !e.Expires.After(a.now()),
		}
		expires := "never"
		if !e.Expires.IsZero() {
			expires = e.Expires.UTC().Format(time.RFC3339)
			v.Expires = expires
		}
		if v.Expired {
			expires += " (expired)"
		}
		credential := e.Certificate
		switch len(e.Hashes) {
		case 0:
		case 1:
			credential = "token " + shortHash(e.Hashes[0])
		default:
			credential = fmt.Sprintf("tokens %s (old), %s", shortHash(e.Hashes[0]), shortHash(e.Hashes[1]))
		}
		names := "all"
		if len(e.Sequencers) > 0 {
			names = strings.Join(e.Sequencers, ",")
		}
		if err := l.add(v, e.Name, string(e.Role), credential, names, strconv.FormatBool(!e.NoCreate), expires); err != nil {
			return err
		}
	}
	return l.end("the file has no entries; firn token new adds one")
}

// shortHash returns enough of a hash for people to recognize it.
func shortHash(hash string) string { return hash[:8] + "…" }

// newTokenRotate makes the command that replaces a token.
func newTokenRotate(a *app) *cobra.Command {
	var file string
	cmd := &cobra.Command{
		Use:   "rotate NAME --file FILE",
		Short: "Give an entry a new token, and keep the old one until it is removed",
		Long: `Rotate makes a new token for an entry and prints it once. The old token remains valid, so
that clients can change one after another:

  1. firn token rotate billing --file tokens.yaml >billing.token
     Servers read the file within 5 seconds, and then accept both tokens.
  2. Give the new token to every client.
  3. Wait until no server has logged "old token still used" for an hour.
  4. firn token remove billing --old --file tokens.yaml

A server with a copy of the file needs the new copy in step 1, before any client has the
new token. If a token has leaked, skip steps 2 and 3: clients with the old token then fail
until they have the new one.`,
		Example: "  firn token rotate billing --file tokens.yaml",
		Args:    cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			token, hash := auth.NewToken()
			err := changeEntry(file, args[0], func(data []byte) ([]byte, error) { return auth.Rotate(data, file, args[0], hash) })
			if err != nil {
				return err
			}
			a.note("the old token of %s remains valid until firn token remove %s --old --file %s", args[0], args[0], file)
			fmt.Fprintln(a.stdout, token)
			return nil
		},
	}
	tokenFileVar(cmd, &file)
	return cmd
}

// newTokenRemove makes the command that removes entries and old tokens.
func newTokenRemove(*app) *cobra.Command {
	var file string
	var old bool
	cmd := &cobra.Command{
		Use:   "remove NAME [--old] --file FILE",
		Short: "Remove an entry or its old token",
		Long: `Remove removes an entry from a token file.

  firn token remove billing --file tokens.yaml

Servers read the file within 5 seconds; then they refuse the token, even on open
connections. With --old, the entry keeps its new token and loses the one that firn token
rotate has replaced.`,
		Example: "  firn token remove billing --file tokens.yaml\n  firn token remove billing --old --file tokens.yaml",
		Args:    cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			return changeEntry(file, args[0], func(data []byte) ([]byte, error) {
				if old {
					return auth.RemoveOld(data, file, args[0])
				}
				return auth.Remove(data, file, args[0])
			})
		},
	}
	tokenFileVar(cmd, &file)
	cmd.Flags().BoolVar(&old, "old", false, "remove only the replaced token")
	return cmd
}

// readTokens reads a token file.
func readTokens(file string) ([]byte, error) {
	data, err := readfile.Read(file)
	if err != nil {
		return nil, failed("", "%w", err)
	}
	return data, nil
}

// addToken adds an entry to a file, which it creates if necessary.
func addToken(file, name, entry string) error {
	return editTokens(file, name, func(data []byte) ([]byte, error) {
		all, err := auth.Entries(data, file)
		for _, e := range all {
			if err == nil && e.Name == name {
				return nil, &exitError{exitFailed, fmt.Errorf("%s already has an entry %q; nothing was changed", file, name), fmt.Sprintf("give it a new token with firn token rotate %s --file %s", name, file)}
			}
		}
		return auth.Add(data, file, entry)
	})
}

// changeEntry changes an entry of an existing file.
func changeEntry(file, name string, change func([]byte) ([]byte, error)) error {
	if _, err := readTokens(file); err != nil {
		return err
	}
	return editTokens(file, name, change)
}

// editTokens changes a token file; name is the name of the entry.
func editTokens(file, name string, change func([]byte) ([]byte, error)) error {
	err := auth.EditFile(file, change)
	var (
		exit *exitError
		two  *auth.RotationError
		path *fs.PathError
	)
	hint := "nothing was changed"
	switch {
	case err == nil, errors.As(err, &exit):
		return err
	case errors.Is(err, auth.ErrNoEntry):
		return &exitError{exitNo, fmt.Errorf("%s has no entry %q", file, name), "run firn token list --file " + file + " for its entries"}
	case errors.As(err, &two):
		hint = fmt.Sprintf("run firn token remove %s --old --file %s once no client has the old token", name, file)
	case errors.Is(err, fs.ErrExist):
		hint = "if no other firn token command is running, remove it"
	case errors.As(err, &path) && path.Op == "chown":
		hint = "run the command as the owner of the file, or as root; nothing was changed"
	}
	return failed(hint, "%w", err)
}
