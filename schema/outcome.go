package schema

// OutcomeKind says how the run of one hook ended.
type OutcomeKind string

// The kinds of outcomes. Only OK carries an opinion. LoadError is always a deny. The others
// follow the hook's failure policy.
const (
	OK        OutcomeKind = "ok"
	Deadline  OutcomeKind = "deadline"
	Errored   OutcomeKind = "error"
	NoWorker  OutcomeKind = "no_worker"
	Lost      OutcomeKind = "lost"
	Busy      OutcomeKind = "busy"
	LoadError OutcomeKind = "load_error"
	// Late only appears in counts. The fabric never applies an answer that arrives after its
	// deadline.
	Late OutcomeKind = "late"
)

// OutcomeKinds lists the kinds in the order of the documentation.
func OutcomeKinds() []OutcomeKind {
	return []OutcomeKind{OK, Deadline, Errored, NoWorker, Lost, Busy, Late, LoadError}
}

// An Outcome is the result or failure of one hook, and its running time. It is as the worker
// saw it, before any failure policy.
type Outcome struct {
	// Hook is the hook's index in its config version.
	Hook int `json:"hook"`
	// Kind says whether the hook answered; absent on the wire: ok.
	Kind OutcomeKind `json:"kind,omitzero"`
	// Error is a sentence for people. It is set unless Kind is ok.
	Error string `json:"error,omitzero"`
	// Result is the hook's answer. If Kind is error, the valid parts of a faulty answer still
	// count.
	Result Result `json:"result,omitzero"`
	// Took is the hook's running time.
	Took Duration `json:"took,omitzero"`
	// Worker is the worker that ran the hook. A reply omits it and names its worker once.
	Worker string `json:"worker,omitzero"`
}
