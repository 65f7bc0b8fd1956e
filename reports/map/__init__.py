"""Maps: the homes of an instance's clients and the loads of its servers, as a page or a picture."""
