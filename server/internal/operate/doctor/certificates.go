package doctor

// certificates judges the files of TLS as the server does. Those that it would
// not load are not here.
func (r *report) certificates() {
	if r.config.TLS == nil {
		return
	}
	for _, f := range r.config.TLS.Judge(r.config.Now()) {
		if f.Wrong {
			r.add("TLS", Fix, "see FirnCertificateExpiring in docs/runbooks.md: the server reloads its files by itself",
				"%s", f.Text)
		} else {
			r.add("TLS", OK, "", "%s", f.Text)
		}
	}
}
