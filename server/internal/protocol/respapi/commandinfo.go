package respapi

import "fmt"

// command answers COMMAND.
func (c *conn) command(args [][]byte) {
	all := c.server.commands
	switch {
	case len(args) == 1, isWord(args[1], "info") && len(args) == 2:
		c.out = appendArray(c.out, len(all))
		for i := range all {
			c.out = all[i].appendInfo(c.out)
		}
	case isWord(args[1], "info"):
		c.out = appendArray(c.out, len(args[2:]))
		for _, name := range args[2:] {
			if cmd := c.server.find(name); cmd != nil {
				c.out = cmd.appendInfo(c.out)
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

// appendInfo appends a command in the form of COMMAND since Redis 7. Sets are
// arrays, which clients read as well.
func (c *command) appendInfo(b []byte) []byte {
	arity, key, flag := int64(-c.min), int64(0), "fast"
	if c.min == c.max {
		arity = int64(c.min)
	}
	if c.parse != nil {
		key, flag = 1, "write"
	}
	b = appendInt(appendBulk(appendArray(b, 10), c.name), arity)
	b = appendSimple(appendArray(b, 1), flag)
	for range 3 { // the first key, the last key and the step
		b = appendInt(b, key)
	}
	for range 4 { // no ACL categories, tips, key specifications or subcommands
		b = appendArray(b, 0)
	}
	return b
}
