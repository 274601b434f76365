package grant

// A freezing is why a member neither acquires nor renews until a fence.
type freezing struct {
	frozen bool  // the store was found to have gone back
	at     int64 // the clock at that moment
	reason error // why
}

// errOverlap is the reason to freeze if another's window overlaps the member's,
// and no record shows why.
var errOverlap = kindErrorf(ErrStoreWentBack,
	"the store went back, or a copy gave the node ID back; fence if in doubt (firn node fence)")

// freeze stops acquiring and renewing, because the store went back to an
// earlier state.
func (m *machine) freeze() {
	if !m.freezing.frozen {
		m.alarm(raisedAlarm{Kind: AlarmStoreWentBack})
	}
	m.freezeBecause(ErrStoreWentBack)
}

// freezeBecause freezes without an alarm.
func (m *machine) freezeBecause(reason error) {
	if !m.freezing.frozen {
		m.freezing.frozen, m.freezing.at, m.freezing.reason = true, m.wall, reason
	}
	m.claim = nil
	m.fail(m.freezing.reason, min(max(m.window()/6, 100), configEvery*3/4))
}

// handleWentBack freezes the member because the store reports that it went
// back, unless the configuration read with that report shows a fence.
func (m *machine) handleWentBack(e event) {
	if !m.freezing.frozen {
		m.freezing.at = m.wall
	}
	if len(e.Values) == 0 || !m.tryThaw(e.Values[0]) {
		m.freeze()
	}
}

// lookForFence reads the configuration, and the record of a window that is
// used.
func (m *machine) lookForFence() {
	a := action{Kind: actionGet, Key: configKey(m.settings.name)}
	if m.usesWindow() {
		a = action{Kind: actionGetMany, Keys: []string{m.hold.key, configKey(m.settings.name)}}
	}
	m.request(opThaw, a)
}

// handleThaw checks whether the sequencer was fenced after the store went back,
// and otherwise, whether another member has claimed the node ID in use since.
func (m *machine) handleThaw(e event) {
	config, record := e.value(len(e.Values)-1), []byte(nil)
	if len(e.Values) > 1 {
		record = e.value(0)
	}
	inUse := m.usesWindow()
	fenced := m.tryThaw(config)
	if inUse {
		r, err := decodeNode(m.hold.key, record)
		if err == nil && r.Owner != "" && r.Owner != m.owner {
			m.handleDisplaced(r, fenced)
		}
	}
	if !fenced {
		m.freezeBecause(m.freezing.reason)
	}
}

// usesWindow reports whether a frozen member still uses its window, as far as
// it knows the only one.
func (m *machine) usesWindow() bool {
	return m.hold != nil && m.hold.phase < holdSealed && !m.hold.lost
}

// tryThaw ends a freeze if the configuration shows that the sequencer was
// fenced after the store went back, and reports whether it does.
func (m *machine) tryThaw(value []byte) bool {
	i, err := decodeInfo(configKey(m.settings.name), value)
	// A fence sets a floor far above all clocks, a creation any. The floor of a
	// fence belongs to one after the store went back, or before anything was
	// lost, if it is new, or if it is so far above this clock that nothing can
	// have been granted yet.
	floor := ms(i.fenceFloor)
	if err != nil || floor <= m.seen.floor && floor <= m.freezing.at+m.maxAhead() {
		return false
	}
	m.freezing.frozen, m.claim, m.failures, m.notBefore, m.status.Err = false, nil, 0, 0, nil
	m.seen.floor, m.seen.incarnation = floor, 0 // what was seen before belongs to a state that is lost
	if m.hold != nil {
		m.handleFence(floor)
	}
	return true
}
