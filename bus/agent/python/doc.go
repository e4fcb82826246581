// Package python contains the Python package for agents, and its tests. Its one file,
// hookfabric.py, has a client and an agent loop, and needs only the standard library.
// Go programs have nothing to import here.
//
// The folder obelix stands in for Obelix, for agents that were written for it. If Obelix
// itself is installed, Python imports that instead. Only programs with this folder on their
// path find the stand-in; processes that run hooks do not.
//
// hookfabric.py folds the answers of in-process hooks in the same way as bus/dispatch folds
// those of remote hooks. The tests feed the same outcomes to both. Change both together.
package python
