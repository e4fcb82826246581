// Package contract is the contract's table of decisions, written by hand: the expected outcome for each event, each
// word that a hook may decide and each kind of value. Tests of the dispatcher and of a whole fabric use the same
// [Cells]. The package imports neither the code under test nor the model.
package contract
