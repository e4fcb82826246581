package scale

// Units are the costs of one of each. A report of a scale run has them.
type Units struct {
	// Call, LocalCall and RemoteCall are a busy broker's CPU time, in seconds: for a call
	// that no hook matches, a call of one hook inside the broker, and a call of one hook of
	// a remote pool. WorkerCall is the worker's time for the latter, without the hook's own
	// time.
	Call       float64 `json:"call,omitzero"`
	LocalCall  float64 `json:"local_call,omitzero"`
	RemoteCall float64 `json:"remote_call,omitzero"`
	WorkerCall float64 `json:"worker_call,omitzero"`
	// FleetCall is LocalCall if thousands of agents ask over hundreds of connections and
	// may get items: each message is then read and written separately.
	FleetCall float64 `json:"fleet_call,omitzero"`
	// Wire is the traffic of a call between agent and broker, in bytes. WorkerWire is what
	// a hook of a remote pool adds between broker and worker.
	Wire       float64 `json:"wire,omitzero"`
	WorkerWire float64 `json:"worker_wire,omitzero"`
	// Agent, Connection and Item are the bytes of memory of a broker for each agent that it
	// knows, each connection, and each waiting item.
	Agent      float64 `json:"agent,omitzero"`
	Connection float64 `json:"connection,omitzero"`
	Item       float64 `json:"item,omitzero"`
	// ItemCPU is the broker's CPU time, in seconds, to add an item to the queue.
	ItemCPU float64 `json:"item_cpu,omitzero"`
	// Cursor and Seen are the bytes of an agent in the buckets of cursors and of recently
	// seen agents.
	Cursor float64 `json:"cursor,omitzero"`
	Seen   float64 `json:"seen,omitzero"`
	// Writes is how many items per second one stream accepts if each is on the disk before
	// its acknowledgement.
	Writes float64 `json:"writes,omitzero"`
	// Connect is the broker's CPU time, in seconds, to accept one connection. Return is
	// that to accept one again and answer its agent after a restart of the broker.
	Connect float64 `json:"connect,omitzero"`
	Return  float64 `json:"return,omitzero"`
	// Start is how long a broker takes to start, in seconds. ItemStart is the additional
	// time for each waiting item.
	Start     float64 `json:"start,omitzero"`
	ItemStart float64 `json:"item_start,omitzero"`
}

// missing returns the units that are 0, by their names in JSON.
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
