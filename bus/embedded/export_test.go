package embedded

// WhoLeft is whoLeft for tests.
var WhoLeft = whoLeft

// LeastRoom is how much has to be free for a server to start.
func LeastRoom(o Options) int64 { return o.leastRoom() }
