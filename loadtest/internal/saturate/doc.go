// Package saturate finds the knee: the highest rate that the fabric keeps up with. knee.go
// searches it, curve.go reports it, and overload.go sends twice that rate and measures how
// the fabric recovers.
package saturate
