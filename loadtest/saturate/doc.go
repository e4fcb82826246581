// Package saturate finds the load up to which the fabric keeps up, its knee, and
// shows what it does beyond: knee.go searches, curve.go says what was found, and
// overload.go has it under twice of that and looks how it comes back.
package saturate
