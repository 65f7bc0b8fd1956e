"""The library: instances that come with the best homes known, a bound, and a certificate that proves both."""
