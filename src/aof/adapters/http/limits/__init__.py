"""What clients may take: connections, requests, streams, failed authentications."""
