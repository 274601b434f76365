package dirstore

// errNoRoom is the system's error for a full disk.
var errNoRoom error = errorDiskFull
