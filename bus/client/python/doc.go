// Package python holds hookfabric.py, the fabric's hooks for agents written in
// Python, and their whole loop if they have none: one file of the standard library,
// which users copy. This package holds its tests and nothing to import.
//
// The file judges its own hooks as the fabric judges remote ones. That is the one
// judgement of bus/dispatch a second time, so that the tests here feed both with the same
// outcomes; whoever changes one changes the other.
package python
