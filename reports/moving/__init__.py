"""The study of moving clients: timelines, policies and methods, ending in a page that answers when to assign anew."""
