package dirstore

// errNoRoom is what the system says of a full disk.
var errNoRoom error = errorDiskFull
