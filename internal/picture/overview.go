package main

import "fmt"

// overviewPicture draws who talks to whom.
func overviewPicture() []byte {
	c := begin(760, 268, "Who talks to whom",
		"A Go program with the library, and firn serve, each acquire a node ID from the store, hold it for a window of time and renew it. "+
			"They make IDs in memory. Programs in any language ask firn serve for IDs. No ID passes through the store.")
	part := func(x, y, width, height int, title string, lines ...string) {
		c.box("box", x, y, width, height)
		y += height/2 - 9*len(lines) + 5
		c.text("title", x+width/2, y, title)
		for i, line := range lines {
			c.text("soft", x+width/2, y+18*(i+1), line)
		}
	}
	part(12, 16, 448, 84, "your Go program, with the library", "makes IDs in memory, without a request per ID")
	part(12, 138, 176, 92, "apps in any language", "over HTTP, gRPC,", "or a Redis client")
	part(300, 138, 160, 92, "firn serve", "one server or many,", "makes IDs in memory")
	part(602, 16, 146, 214, "store", "a directory,", "etcd,", "PostgreSQL, MySQL,", "or Kubernetes")
	arrow := func(x, y, to int, above, below string) {
		fmt.Fprintf(c, `<path class="arrow" marker-start="url(#head)" d="M%d %dH%d"/>`+"\n", x, y, to)
		c.text("soft", (x+to)/2, y-8, above)
		c.text("soft", (x+to)/2, y+18, below)
	}
	arrow(190, 184, 298, "ask for IDs,", "one or many")
	arrow(462, 58, 600, "acquire a node ID,", "renew its window")
	arrow(462, 184, 600, "acquire a node ID,", "renew its window")
	c.text("soft", 380, 256, "The store holds who may use which node ID until when. No ID passes through it.")
	return c.end()
}
