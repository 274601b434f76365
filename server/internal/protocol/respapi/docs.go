package respapi

import (
	"fmt"
	"strings"
)

// command answers COMMAND.
func (c *conn) command(args [][]byte) {
	switch {
	case len(args) == 1:
		b := appendArray(c.out, len(commands))
		for i := range commands {
			b = commands[i].appendInfo(b, c.resp3)
		}
		c.out = b
	case isWord(args[1], "count") && len(args) == 2:
		c.out = appendInt(c.out, int64(len(commands)))
	case isWord(args[1], "list") && len(args) == 2:
		b := appendArray(c.out, len(commands))
		for i := range commands {
			b = appendBulk(b, commands[i].name)
		}
		c.out = b
	case isWord(args[1], "info"):
		names := commandNames(args[2:])
		b := appendArray(c.out, len(names))
		for _, name := range names {
			if cmd := find(name); cmd != nil {
				b = cmd.appendInfo(b, c.resp3)
			} else {
				b = appendNoArray(b, c.resp3)
			}
		}
		c.out = b
	case isWord(args[1], "docs"):
		var known []*command
		for _, name := range commandNames(args[2:]) {
			if cmd := find(name); cmd != nil {
				known = append(known, cmd)
			}
		}
		b := appendMap(c.out, c.resp3, len(known))
		for _, cmd := range known {
			b = cmd.appendDocs(b, c.resp3)
		}
		c.out = b
	default:
		c.fail(codeErr, fmt.Sprintf("unknown subcommand or wrong number of arguments for '%.64s': use %s", args[1], find([]byte("command")).usage))
	}
}

// commandNames returns the names, or those of all commands if names is empty.
func commandNames(names [][]byte) [][]byte {
	if len(names) == 0 {
		for i := range commands {
			names = append(names, []byte(commands[i].name))
		}
	}
	return names
}

// appendInfo appends a command in the form of COMMAND since Redis 7.
func (c *command) appendInfo(b []byte, resp3 bool) []byte {
	b = appendArray(b, 10)
	b = appendBulk(b, c.name)
	b = appendInt(b, c.arity())
	b = appendSet(b, resp3, len(c.flags))
	for _, f := range c.flags {
		b = appendSimple(b, f)
	}
	key := int64(0)
	if c.key {
		key = 1
	}
	for range 3 { // the first key, the last key and the step
		b = appendInt(b, key)
	}
	b = appendSet(b, resp3, 0) // ACL categories
	b = appendArray(b, 0)      // tips
	b = appendArray(b, 0)      // key specifications: the three numbers suffice
	return appendArray(b, 0)   // subcommands
}

// appendNoArray appends the value that stands for a missing array.
func appendNoArray(b []byte, resp3 bool) []byte {
	if resp3 {
		return appendNull(b, true)
	}
	return append(b, "*-1\r\n"...)
}

// appendDocs appends the documentation of a command, which redis-cli uses for
// hints.
func (c *command) appendDocs(b []byte, resp3 bool) []byte {
	arguments, ok := argumentsOf(c.usage)
	summary, fields := c.about, 2
	switch {
	case !ok:
		summary += ": " + c.usage
	case len(arguments) > 0:
		fields++
	}
	b = appendMap(appendBulk(b, c.name), resp3, fields)
	b = appendBulk(appendBulk(b, "summary"), summary)
	b = appendBulk(appendBulk(b, "group"), c.group)
	if fields == 2 {
		return b
	}
	b = appendArray(appendBulk(b, "arguments"), len(arguments))
	for _, a := range arguments {
		b = a.append(b, resp3)
	}
	return b
}

// An argument is an argument of a command, as in COMMAND DOCS.
type argument struct {
	name, token string // the token is a word before it
	flags       []string
}

// argumentsOf parses a usage with arguments of the forms name, [name], [TOKEN
// name] and [name ...]. It reports false for usages with alternatives.
func argumentsOf(usage string) (all []argument, ok bool) {
	_, rest, _ := strings.Cut(usage, " ")
	for rest = strings.TrimSpace(rest); rest != ""; rest = strings.TrimSpace(rest) {
		var a argument
		part, end := "", strings.IndexByte(rest, ' ')
		if rest[0] == '[' {
			end = strings.IndexByte(rest, ']')
			if end < 0 {
				return nil, false
			}
			part, rest = rest[1:end], rest[end+1:]
			a.flags = []string{"optional"}
		} else if end < 0 {
			part, rest = rest, ""
		} else {
			part, rest = rest[:end], rest[end:]
		}
		if strings.ContainsAny(part, "|[") {
			return nil, false
		}
		part, many := strings.CutSuffix(part, " ...")
		if many {
			a.flags = append(a.flags, "multiple")
		}
		if token, name, found := strings.Cut(part, " "); found {
			a.token, part = token, name
		}
		a.name = part
		all = append(all, a)
	}
	return all, true
}

func (a *argument) append(b []byte, resp3 bool) []byte {
	fields := 2
	if a.token != "" {
		fields++
	}
	if len(a.flags) > 0 {
		fields++
	}
	b = appendMap(b, resp3, fields)
	b = appendBulk(appendBulk(b, "name"), a.name)
	b = appendBulk(appendBulk(b, "type"), "string")
	if a.token != "" {
		b = appendBulk(appendBulk(b, "token"), a.token)
	}
	if len(a.flags) > 0 {
		b = appendSet(appendBulk(b, "flags"), resp3, len(a.flags))
		for _, f := range a.flags {
			b = appendSimple(b, f)
		}
	}
	return b
}
