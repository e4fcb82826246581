package server

// Interest reports whether the tenant has a subscription to subject. Without one a message need not be
// published.
func (s *Server) Interest(subject string) bool {
	return s.account.SubscriptionInterest(subject)
}
