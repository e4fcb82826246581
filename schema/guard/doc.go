// Package guard decides which hooks run at a call, and which calls are guarded. A guarded call
// must not pass unless the fabric has judged it.
//
// Brokers plan with this package. Shims decide with it while no broker answers, from the signed
// document that [Document] makes of a configuration. Both use the same code, so that they
// cannot disagree.
//
// # Concurrency
//
// Several goroutines may use [Rules], [Freezes] and a [Signer].
//
// # Usage
//
//	rules, err := guard.Compile(policy.Hooks, policy.Overrides)
//	if err != nil {
//		return err
//	}
//	call := guard.Call{Event: schema.PreToolUse, Agent: "ci-7", Tool: "Bash"}
//	if hook := rules.Guard(call); hook != nil {
//		return fmt.Errorf("no broker answers, and %s guards this call", hook.Hook)
//	}
package guard
