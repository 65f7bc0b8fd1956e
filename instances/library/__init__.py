"""The library: instances with their best known homes, a lower bound, and a certificate that proves both."""
