package main

import (
	"bufio"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/firnid/firn/server/auth"
)

// tokenHelp says what a file of tokens looks like.
const tokenHelp = `A file of tokens says who may do what. It holds hashes, from which no token can be
found, and is read again when it changes:

  tokens:
    - name: billing
      sha256: 5994471abb01112afcc18159f6cc74b4f511b99806da59b3caf5a9c173cacfc5
      role: generate
      sequencers: ["orders", "invoices-*"]   # all, if it is left out
      create: 20                             # see below; 1000, if it is left out
      expires: 2027-01-01T00:00:00Z          # never, if it is left out
    - name: web
      sha256: [2c26…, fcde…]                 # the old and the new token, while it is rotated
      role: generate
    - name: ops
      dns: ops.example.com                   # a name in a client's certificate
      role: admin

Roles: generate takes IDs, and sees nothing of the fleet; read sees sequencers, members
and metrics, and takes none; admin does everything. All may ask what an ID says. With
sequencers: [...], an entry takes, sees and changes these alone, lists have no others,
and metrics, which have the names of all, are not shown.

Of a client's certificate, uri, dns and cn name one kind of name each: a URI, a DNS
name, or the common name. An entry for one is not matched by another.

create is how many sequencers an entry may create by taking IDs of names that do not
exist, counted by each server since it was started; after 50 at once, one a second.
With 0 the entry takes IDs only of sequencers that exist.

Over HTTP a token is sent as Authorization: Bearer firn_…, over RESP as AUTH firn_….`

func newToken(a *app) *cobra.Command {
	return parent(&cobra.Command{
		Use:     "token",
		Short:   "Make, list, rotate and remove tokens for firn serve",
		Long:    tokenHelp,
		Example: "  firn token new --name billing --role generate --file tokens.yaml\n  firn token list --file tokens.yaml\n  firn token rotate billing --file tokens.yaml",
	}, newTokenNew(a), newTokenList(a), newTokenRotate(a), newTokenRemove(a), newTokenHash(a))
}

func newTokenNew(a *app) *cobra.Command {
	var (
		name, role, file, expires string
		sequencers                []string
	)
	cmd := &cobra.Command{
		Use:   "new --name NAME --role ROLE [--file FILE]",
		Short: "Make a token, and its entry for the file",
		Long: `New creates a token of 256 random bits and prints it once: the file has only its hash.
Its entry is added to --file, which is created if it does not exist, or printed on
stderr. To replace the token of an entry, use firn token rotate.

` + tokenHelp,
		Example: "  firn token new --name billing --role generate --sequencers 'orders,invoices-*' --file tokens.yaml\n  firn token new --name ops --role admin --expires 2027-01-01T00:00:00Z",
		Args:    noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			token, hash := auth.NewToken()
			var b strings.Builder
			fmt.Fprintf(&b, "  - name: %q\n    sha256: %s\n    role: %s\n", name, hash, role)
			if len(sequencers) > 0 {
				quoted := make([]string, len(sequencers))
				for i, s := range sequencers {
					quoted[i] = fmt.Sprintf("%q", s)
				}
				fmt.Fprintf(&b, "    sequencers: [%s]\n", strings.Join(quoted, ", "))
			}
			if expires != "" {
				if t, err := time.Parse(time.RFC3339, expires); err == nil && t.Before(time.Now()) {
					return misuse("", "--expires %s: that is over already", expires)
				}
				fmt.Fprintf(&b, "    expires: %s\n", expires)
			}
			if _, err := auth.Parse([]byte("tokens:\n"+b.String()), "entry"); err != nil {
				return misuse("--name, --role (generate, read or admin), --sequencers NAME,… and --expires TIME say who may do what", "%s", faultsOf(err))
			}
			if file == "" {
				fmt.Fprintf(a.stderr, "Its entry, for the list below tokens: in the file of tokens:\n\n%s\n", b.String())
			} else if err := addToken(file, name, b.String()); err != nil {
				return err
			}
			fmt.Fprintln(a.stdout, token)
			return nil
		},
	}
	f := cmd.Flags()
	f.StringVar(&name, "name", "", "`NAME` that logs show")
	f.StringVar(&role, "role", "", "`ROLE`: generate, read or admin")
	f.StringSliceVar(&sequencers, "sequencers", nil, "`NAMES` or patterns with one * (default all)")
	f.StringVar(&expires, "expires", "", "`TIME` when it ends, such as 2027-01-01T00:00:00Z (default never)")
	f.StringVar(&file, "file", "", "`FILE` to add the entry to")
	complete(cmd, "role", func() []string { return []string{"generate", "read", "admin"} })
	return cmd
}

// faultsOf is an error of an entry in one line, without where it is.
func faultsOf(err error) string {
	lines := strings.Split(err.Error(), "\n")
	for i, line := range lines {
		if _, after, ok := strings.Cut(line, ": "); ok {
			lines[i] = after
		}
	}
	return strings.Join(lines, "; ")
}

func newTokenHash(a *app) *cobra.Command {
	return &cobra.Command{
		Use:     "hash",
		Short:   "Print the hash of a token that is on stdin",
		Long:    "Hash reads a token from stdin and prints what a file of tokens has of it.\n\n" + tokenHelp,
		Example: "  firn token hash <token.txt",
		Args:    noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			line, err := bufio.NewReader(a.stdin).ReadString('\n')
			token := strings.TrimSpace(line)
			if token == "" {
				if err == nil {
					err = errors.New("there is none")
				}
				return misuse("write one line with a token, such as: firn token hash <token.txt", "no token on stdin: %w", err)
			}
			fmt.Fprintln(a.stdout, auth.Hash(token))
			return nil
		},
	}
}
