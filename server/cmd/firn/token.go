package main

import (
	"bufio"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/firnid/firn/server/internal/access/auth"
)

// tokenHelp describes a token file.
const tokenHelp = `A token file says what each client may do. It holds only hashes, from which no token can be
recovered, and is read again when it changes:

  tokens:
    - name: billing
      sha256: 5994471abb01112afcc18159f6cc74b4f511b99806da59b3caf5a9c173cacfc5
      role: generate
      sequencers: ["orders", "invoices-*"]   # default: all
      create: false                          # see below; default: true
      expires: 2027-01-01T00:00:00Z          # default: never
    - name: web
      sha256: [2c26…, fcde…]                 # old and new token, during rotation
      role: generate
    - name: ops
      dns: ops.example.com                   # a name in a client certificate
      role: admin

Roles: generate takes IDs, but does not see the fleet; read sees sequencers, members and
metrics, but takes no IDs; admin does everything. Every role may inspect IDs. With
sequencers: [...], an entry takes, sees and changes only these; lists show no others, and
metrics, which have the names of all sequencers, are not available.

uri, dns and cn each match one kind of name in a client certificate: a URI, a DNS name, or
the common name. An entry for one kind is not matched by another.

With create: false, an entry takes IDs only of existing sequencers. Otherwise taking IDs of
an unknown name creates the sequencer.

Over HTTP, send the token as Authorization: Bearer firn_…; over RESP as AUTH firn_….`

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
		Short: "Make a token and its entry in the token file",
		Long: `New makes a token of 256 random bits and prints it once: the file has only its hash.

  firn token new --name billing --role generate --file tokens.yaml

The entry is added to --file, which is created if it does not exist, or printed on stderr.
To replace the token of an entry, use firn token rotate.

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
					return misuse("", "--expires %s: it is in the past", expires)
				}
				fmt.Fprintf(&b, "    expires: %s\n", expires)
			}
			if _, err := auth.Parse([]byte("tokens:\n"+b.String()), "entry"); err != nil {
				return misuse("the entry is made from --name, --role (generate, read or admin), --sequencers NAME,… and --expires TIME", "%s", faultsOf(err))
			}
			if file == "" {
				fmt.Fprintf(a.stderr, "Add this entry to the list tokens: in the token file:\n\n%s\n", b.String())
			} else if err := addToken(file, name, b.String()); err != nil {
				return err
			}
			fmt.Fprintln(a.stdout, token)
			return nil
		},
	}
	f := cmd.Flags()
	f.StringVar(&name, "name", "", "`NAME` of the entry, for logs")
	f.StringVar(&role, "role", "", "`ROLE`: generate, read or admin")
	f.StringSliceVar(&sequencers, "sequencers", nil, "`NAMES` of sequencers, or patterns with one * (default all)")
	f.StringVar(&expires, "expires", "", "`TIME` at which the token expires, such as 2027-01-01T00:00:00Z (default never)")
	f.StringVar(&file, "file", "", "token `FILE` to add the entry to")
	complete(cmd, "role", wordsOf("generate", "read", "admin"))
	return cmd
}

// faultsOf returns an error of an entry in one line, without its place.
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
		Short:   "Print the hash of a token read from stdin",
		Long:    "Hash reads a token from stdin and prints its hash for the token file.\n\n  firn token hash <billing.token\n\n" + tokenHelp,
		Example: "  firn token hash <token.txt",
		Args:    noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			line, err := bufio.NewReader(a.stdin).ReadString('\n')
			token := strings.TrimSpace(line)
			if token == "" {
				if err == nil {
					err = errors.New("stdin is empty")
				}
				return misuse("give one line with a token, such as: firn token hash <token.txt", "no token on stdin: %w", err)
			}
			fmt.Fprintln(a.stdout, auth.Hash(token))
			return nil
		},
	}
}
