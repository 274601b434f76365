package respapi

import "fmt"

// command answers COMMAND.
func (c *conn) command(args [][]byte) {
	all := c.s.commands
	switch {
	case len(args) == 1, isWord(args[1], "info") && len(args) == 2:
		c.out = appendArray(c.out, len(all))
		for i := range all {
			c.out = all[i].appendInfo(c.out, c.resp3)
		}
	case isWord(args[1], "info"):
		c.out = appendArray(c.out, len(args[2:]))
		for _, name := range args[2:] {
			if cmd := c.s.find(name); cmd != nil {
				c.out = cmd.appendInfo(c.out, c.resp3)
			} else {
				c.out = appendNull(c.out, c.resp3)
			}
		}
	case isWord(args[1], "count") && len(args) == 2:
		c.out = appendInt(c.out, int64(len(all)))
	case isWord(args[1], "list") && len(args) == 2:
		c.out = appendArray(c.out, len(all))
		for i := range all {
			c.out = appendBulk(c.out, all[i].name)
		}
	default:
		c.fail(fmt.Sprintf("unknown subcommand or wrong number of arguments for '%.64s': use %s", args[1], c.cmd.usage))
	}
}

// appendInfo appends a command in the form of COMMAND since Redis 7.
func (c *command) appendInfo(b []byte, resp3 bool) []byte {
	arity, key, flags := int64(-c.min), int64(0), []string{"fast"}
	if c.min == c.max {
		arity = int64(c.min)
	}
	if c.take != nil {
		key, flags = 1, []string{"write", "fast"}
	}
	b = appendArray(b, 10)
	b = appendBulk(b, c.name)
	b = appendInt(b, arity)
	b = appendSet(b, resp3, len(flags))
	for _, f := range flags {
		b = appendSimple(b, f)
	}
	for range 3 { // the first key, the last key and the step
		b = appendInt(b, key)
	}
	b = appendSet(b, resp3, 0) // ACL categories
	b = appendArray(b, 0)      // tips
	b = appendArray(b, 0)      // key specifications: the three numbers suffice
	return appendArray(b, 0)   // subcommands
}
