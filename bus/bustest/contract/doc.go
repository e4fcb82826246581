// Package contract is the table of events and decisions, written out by hand from
// the contract, and what a hook's answer must come to by it: each event × each word
// that a hook may decide × each kind of value. The dispatcher and a whole fabric
// are walked through it by the same [Cells]. It takes nothing from what it judges,
// and nothing from the model either.
package contract
