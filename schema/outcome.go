package schema

// OutcomeKind says what came of asking one hook.
type OutcomeKind string

// The kinds of outcomes. Only OK carries an opinion; the others follow the
// hook's failure policy, and LoadError is a deny whatever that says.
const (
	OK        OutcomeKind = "ok"
	Deadline  OutcomeKind = "deadline"
	Errored   OutcomeKind = "error"
	NoWorker  OutcomeKind = "no_worker"
	Lost      OutcomeKind = "lost"
	Busy      OutcomeKind = "busy"
	LoadError OutcomeKind = "load_error"
	// Late is only ever counted: an answer that came after its deadline is never applied.
	Late OutcomeKind = "late"
)

// OutcomeKinds lists the kinds in the order of the documentation.
func OutcomeKinds() []OutcomeKind {
	return []OutcomeKind{OK, Deadline, Errored, NoWorker, Lost, Busy, Late, LoadError}
}

// An Outcome is what came of asking one hook: its result or its failure, and
// how long that took. It is as the worker saw it, no failure policy applied.
type Outcome struct {
	// Hook is the hook's index in its config version.
	Hook int `json:"hook"`
	// Kind says whether it answered; absent on the wire is ok.
	Kind OutcomeKind `json:"kind,omitzero"`
	// Error is a sentence for a person, when Kind is not ok.
	Error string `json:"error,omitzero"`
	// Result is what the hook said. A hook whose answer was faulty (Kind
	// error) may still have said legal things; they count.
	Result Result `json:"result,omitzero"`
	// Took is how long the hook ran.
	Took Duration `json:"took,omitzero"`
	// Worker ran it. It is absent inside a reply, which names its worker once.
	Worker string `json:"worker,omitzero"`
}
