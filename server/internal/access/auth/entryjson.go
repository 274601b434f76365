package auth

import "time"

// EntryJSON is an Entry in JSON, for firn token list.
type EntryJSON struct {
	Name        string   `json:"name"`
	Role        Role     `json:"role"`
	SHA256      []string `json:"sha256,omitempty"`
	Certificate string   `json:"certificate,omitempty"`
	Sequencers  []string `json:"sequencers,omitempty"` // empty means all
	Create      bool     `json:"create"`
	Expires     string   `json:"expires,omitempty"`
	Expired     bool     `json:"expired"`
	Quota                // also those of its role; absent if there are none
}

// JSON returns the entry for JSON, as it is at a time.
func (e *Entry) JSON(now time.Time) EntryJSON {
	j := EntryJSON{Name: e.Name, Role: e.Role, SHA256: e.SHA256, Certificate: e.Certificate(),
		Sequencers: e.Sequencers, Create: e.Create == nil || *e.Create, Quota: e.Quota}
	if ends := e.Ends(); !ends.IsZero() {
		j.Expires, j.Expired = ends.UTC().Format(time.RFC3339), !ends.After(now)
	}
	return j
}
