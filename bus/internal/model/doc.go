// Package model is the fabric's judgement in its plainest form: one thread, no
// bus, no clock, no concurrency, nothing fast. It says what must come out when
// an event meets a configuration and every hook answers as a script says. It
// is the oracle that property, load and crash tests hold the real fabric
// against, so it shares no code with it: it has its own table of events, its
// own glob matching and its own fold, and takes only data types from schema.
//
// Read in this order:
//
//   - rules.go: the table of events, decisions, values and rewrites.
//   - normalise.go: what one answer of one hook counts for: [Normalise].
//   - effect.go: which effects there are.
//   - fold.go: how two results become one: [Fold].
//   - resolve.go: which hooks an event concerns, in which order: [Resolve], [Guarded].
//   - stages.go: those among them that the aggregator itself is: [Stages].
//   - judge.go: the whole call: [Judge], and what it expects.
//   - compare.go: holding a real verdict, and real calls, against an [Expectation].
//
// # Use
//
// A test draws a configuration, an event and a script from package gen (or
// writes them by hand), lets the fabric judge with workers that answer by the
// same script, and compares:
//
//	want := model.Judge(cfg, event, script, model.Options{})
//	if d := want.Diff(verdict); len(d) > 0 {
//		t.Errorf("the fabric and the model differ: %s", strings.Join(d, "; "))
//	}
//
// Texts that the fabric words itself (sentences in hook_errors, the reason of a
// deny that a failure policy decided) are compared by hook and number only.
//
// # Readings
//
// Where the contract leaves room the model reads it like this:
//
//   - A faulty part makes one sentence in hook_errors, each part its own.
//   - Five faults make the outcome an error: an unknown or illegal decision, a
//     stop without its value (a wrong type counts as without), a rewrite from a
//     readonly hook, a result that is too large, junk. The failure policy then
//     decides, unless the same answer holds a legal deny, fail, stop or retry,
//     which stands; a legal ask stands unless the hook is fail-closed. Everything
//     else that is legal in the answer is kept, but for one that is too large:
//     of that only the decision and its reason are.
//   - All other faults are dropped with a sentence and the outcome stays ok.
//   - "A legal deny stands" holds on the Post events and QueryEnd too, although
//     nothing ends there.
//   - A JSON null is an absent part.
//   - An illegal decision counts as none when the answer's value is judged.
//   - Of the effects of one answer the first 64 count; all others are one fault.
//   - Every body is held against its header's tool name; otherwise no code
//     reads one that no enforcing hook concerns, so an unreadable one there goes
//     unnoticed. A condition that only asks what the routing says is as good as
//     a matcher: while it is false its hook is not concerned. But where the call
//     is guarded, a body that is not JSON is refused all the same.
//   - A condition that cannot be evaluated counts as true and leaves no
//     sentence in the verdict.
//   - Matchers are about tools: where an event has none they do not count.
package model
