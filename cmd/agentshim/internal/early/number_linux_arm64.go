package early

// The numbers of calls.
const (
	sysOpenat       = 56
	sysClose        = 57
	sysRead         = 63
	sysWrite        = 64
	sysPpoll        = 73
	sysExitGroup    = 94
	sysClockGettime = 113
	sysGeteuid      = 175
	sysSocket       = 198
	sysConnect      = 203
	sysSendto       = 206
	sysGetsockopt   = 209
	sysGetrandom    = 278
)
