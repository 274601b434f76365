package grant

import (
	"cmp"
	"errors"
	"fmt"
)

// configEvery is the longest time between two reads of the configuration while
// a window is open, in ms.
const configEvery = int64(20 * 1000)

// A seenConfig is what a member knows of the configuration of the sequencer.
type seenConfig struct {
	info                    Info   // as last read
	infoBytes               []byte // its bytes
	lowestNode, highestNode uint64 // the node IDs that the member may take
	forbidden               bool   // it forbids acquiring
	hinted                  bool   // it may have changed
	rereadAt                int64  // Mono when to read it again while a window is open
	floor                   int64  // the greatest floor of a fence ever read, or never
	incarnation             uint64 // the greatest incarnation ever read
}

// errOtherNodes is an ErrNodesExhausted: the sequencer's range has none of the
// node IDs that the member may take.
var errOtherNodes = fmt.Errorf("%w", ErrNodesExhausted)

// configDue reports whether to read the configuration again.
func (m *machine) configDue() bool { return m.mayHaveRest() && m.mono >= m.seen.rereadAt }

// rereadConfig reads the configuration while a node ID is held.
func (m *machine) rereadConfig() {
	m.seen.hinted = false
	m.request(opReread, action{Kind: actionGet, Key: configKey(m.settings.name)})
}

// handleConfig continues after a read of the configuration before a pick.
func (m *machine) handleConfig(e event) {
	if m.evaluateConfig(e.value(0)) && !m.mustSeal() {
		m.search.rounds = 0
		m.pick()
	}
}

// handleReread continues after a read of the configuration while a node ID is
// held.
func (m *machine) handleReread(e event) {
	switch {
	case e.Err != nil:
		m.seen.rereadAt = m.mono
		if m.fail(e.Err, 0); m.claim != nil {
			m.seen.rereadAt = m.notBefore + 1 // tries to settle the claim in between
		}
	case m.evaluateConfig(e.value(0)):
		if !m.needsWindow() {
			m.status.Err = nil // the error was about reading this
		}
	case errors.Is(m.status.Err, ErrDetached) || errors.Is(m.status.Err, ErrDestroyed):
		m.hold.close() // so that leave gives it back at once
		m.notBefore = 0
	}
}

// evaluateConfig evaluates the configuration. It reports whether node IDs may
// be acquired. If not, it has recorded the reason and when to look again.
func (m *machine) evaluateConfig(value []byte) bool {
	i, err := decodeInfo(configKey(m.settings.name), value)
	floor := ms(i.fenceFloor)
	switch {
	case value == nil && m.seen.infoBytes == nil:
		err = fmt.Errorf("%w: %s", ErrNotFound, m.settings.name)
	case value == nil, err == nil && floor < m.seen.floor,
		err == nil && floor == m.seen.floor && i.Incarnation < m.seen.incarnation:
		m.freeze()
		return false
	case err == nil:
		m.seen.rereadAt = m.mono + configEvery*9/10 - int64(m.settings.random()%uint64(configEvery/5))
		if m.hold != nil && floor > m.seen.floor {
			m.handleFence(floor)
		}
		m.seen.floor, m.seen.incarnation = floor, max(m.seen.incarnation, i.Incarnation)
		err = m.adoptConfig(i, value)
	}
	if err != nil {
		m.failForbidden(err)
	}
	return err == nil
}

// adoptConfig takes over a configuration if it is of the member's sequencer. It
// returns why no node ID can be acquired, or nil.
func (m *machine) adoptConfig(i Info, value []byte) error {
	c := i.Config
	if m.settings.config != nil {
		want := *m.settings.config
		want.Window, want.Prefix = c.Window, "" // see SetWindow; the prefix is not the machine's
		if err := c.compare(m.settings.name, want); err != nil {
			return err
		}
	}
	if m.seen.infoBytes != nil && !m.seen.info.Config.Layout.SameIDs(c.Layout) {
		return kindErrorf(ErrMismatch, "sequencer %s has layout %s now, not %s: it was created again", m.settings.name,
			c.Layout, m.seen.info.Config.Layout)
	}
	m.seen.info, m.seen.infoBytes = i, value
	if err := m.settings.Nodes.Check(c.Layout); err != nil {
		return err
	}
	mine := *cmp.Or(m.settings.Nodes, &NodeRange{0, c.Layout.MaxNode()})
	m.seen.lowestNode, m.seen.highestNode = mine.Lo, mine.Hi
	if n := c.Nodes; n != nil {
		if max(mine.Lo, n.Lo) > min(mine.Hi, n.Hi) {
			return fmt.Errorf("%w: sequencer %s only has %v in this store, and this member may take %d..%d",
				errOtherNodes, m.settings.name, n, mine.Lo, mine.Hi)
		}
		m.seen.lowestNode, m.seen.highestNode = max(mine.Lo, n.Lo), min(mine.Hi, n.Hi)
	}
	if i.MovedTo != "" {
		return movedError(m.settings.name, i.MovedTo)
	}
	if err := i.State.err(); err != nil {
		// A caller may read this long after.
		return fmt.Errorf("%w: %s was %v when last read", err, m.settings.name, i.State)
	}
	return nil
}

// failForbidden records why no node ID can be acquired until the configuration
// changes.
func (m *machine) failForbidden(err error) {
	m.demand, m.seen.forbidden = false, true
	m.fail(err, min(max(m.window()/3, 1000), 5000))
	if m.seen.hinted && m.hold == nil {
		m.notBefore = 0 // a hint came after it was requested
	}
}
