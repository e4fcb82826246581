package server

// WhoLeft is whoLeft for tests.
var WhoLeft = whoLeft

// SizeOf is sizeOf for tests.
var SizeOf = sizeOf

// LeastRoom is how much has to be free for a server to start.
func LeastRoom(o Options) int64 { return o.leastRoom() }

// Has reports whether the server still has that client.
func (s *Server) Has(client uint64) bool { return s.nats.GetClient(client) != nil }
