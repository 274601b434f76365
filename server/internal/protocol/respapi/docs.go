package respapi

import "fmt"

// answerCommand answers COMMAND.
func (c *conn) answerCommand(args [][]byte) {
	switch {
	case len(args) == 1, isWord(args[1], "info"):
		names := commandNames(args[min(len(args), 2):])
		b := appendArray(c.out, len(names))
		for _, name := range names {
			if cmd := find(name); cmd != nil {
				b = cmd.appendInfo(b, c.resp3)
			} else {
				b = appendNull(b, c.resp3)
			}
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
	default:
		c.fail(fmt.Sprintf("unknown subcommand or wrong number of arguments for '%.64s': use %s", args[1], find([]byte("command")).usage))
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
