"""Texts of about 1, 5 and 60 s of speech."""
TEXTS = (
    "Good morning to you all.",
    "The quick brown fox jumps over the lazy dog, and then it sleeps until the evening comes.",
    "The old man walked slowly along the river and looked at the boats. Nobody knew where he had come from, "
    "or why he stayed. Every morning he bought a loaf of bread, a piece of cheese and a newspaper, which he never "
    "read. In the afternoon he sat on a bench near the bridge and fed the birds. When it rained he opened a large "
    "black umbrella and stayed where he was. The children were afraid of him at first, but soon they learned that "
    "he could tell wonderful stories about far away countries. He told them about mountains that touch the sky, "
    "about deserts where it never rains, and about cities that were built on water. One day he was gone. The bench "
    "was empty, and the birds waited in vain. Some people said that he had gone back to the sea. Others believed "
    "that he had never been there at all. But the children kept his stories, and told them to their own children "
    "many years later, on quiet evenings beside the fire. And whenever a boat came down the river, somebody looked "
    "up and asked who it might be. It was never him, but it was always a good reason to tell the stories once more.",
)
