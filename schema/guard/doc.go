// Package guard decides at which calls a hook is asked, and with that which calls
// are guarded: must not pass unless somebody judged them.
//
// Brokers plan by it; shims decide by it while no broker answers, from the signed
// document that [Document] makes of a configuration. It is one piece of code, so
// that the two can not disagree.
package guard
