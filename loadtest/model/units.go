package model

// Units are what one of each costs. A report of a scale run has them.
type Units struct {
	// Call, LocalCall and RemoteCall are a busy broker's CPU time, in seconds, for a call
	// that no hook matches, of one hook inside the broker, and of one hook of a remote
	// pool; WorkerCall is the worker's for that last one, without what the hook does.
	Call       float64 `json:"call,omitzero"`
	LocalCall  float64 `json:"local_call,omitzero"`
	RemoteCall float64 `json:"remote_call,omitzero"`
	WorkerCall float64 `json:"worker_call,omitzero"`
	// FleetCall is LocalCall where thousands of agents ask over hundreds of connections,
	// and may be delivered something: each message is then read and written by itself.
	FleetCall float64 `json:"fleet_call,omitzero"`
	// Wire is what a call takes on the wire between agent and broker, WorkerWire what
	// a hook of a remote pool adds between broker and worker, in bytes.
	Wire       float64 `json:"wire,omitzero"`
	WorkerWire float64 `json:"worker_wire,omitzero"`
	// Agent, Connection and Item are the bytes of memory that a broker takes for each
	// agent that it knows, each connection, and each item that waits.
	Agent      float64 `json:"agent,omitzero"`
	Connection float64 `json:"connection,omitzero"`
	Item       float64 `json:"item,omitzero"`
	// ItemCPU is the broker's CPU time, in seconds, to take an item into the queue.
	ItemCPU float64 `json:"item_cpu,omitzero"`
	// Cursor and Seen are the bytes that an agent takes in the buckets of cursors and
	// of agents that were seen lately.
	Cursor float64 `json:"cursor,omitzero"`
	Seen   float64 `json:"seen,omitzero"`
	// Writes is how many items per second one stream takes that are on the disk before
	// they are acknowledged.
	Writes float64 `json:"writes,omitzero"`
	// Connect is the broker's CPU time, in seconds, to take one connection, Return to
	// take one back and answer its agent after a restart of the broker.
	Connect float64 `json:"connect,omitzero"`
	Return  float64 `json:"return,omitzero"`
	// Start is how long a broker takes to start, in seconds, and ItemStart how much
	// longer for each item that waits.
	Start     float64 `json:"start,omitzero"`
	ItemStart float64 `json:"item_start,omitzero"`
}

// missing are the units that are 0, by their names in JSON.
func (u *Units) missing() (names []string) {
	for _, one := range []struct {
		name  string
		value float64
	}{
		{"call", u.Call}, {"local_call", u.LocalCall}, {"remote_call", u.RemoteCall}, {"worker_call", u.WorkerCall}, {"fleet_call", u.FleetCall}, {"wire", u.Wire},
		{"worker_wire", u.WorkerWire}, {"agent", u.Agent}, {"connection", u.Connection}, {"item", u.Item}, {"item_cpu", u.ItemCPU},
		{"cursor", u.Cursor}, {"seen", u.Seen}, {"writes", u.Writes}, {"return", u.Return}, {"start", u.Start}, {"item_start", u.ItemStart},
	} {
		if one.value <= 0 {
			names = append(names, one.name)
		}
	}
	return names
}
