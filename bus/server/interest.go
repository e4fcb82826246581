package server

// Interest reports whether anybody of the tenant listens on subject, so that what nobody
// hears need not be said.
func (s *Server) Interest(subject string) bool {
	return s.account.SubscriptionInterest(subject)
}
