"""Training of the Unigram tokenizer as Beam pipelines; `finpile_pipelines.unigram.tokenizer` puts them together.

texts             what is trained on: files, domains, chunks
counting          texts to the pretoken counts of each chunk
split_merge       a model for each chunk, and their average
partitions        the counts of all text, cut by pretoken
seeds             the pieces that EM on all text begins with
partitioned_text  the lattices of all text, and the questions that EM puts to them
whole_text        EM on all text: on the merged pieces (refit), or from seeds (global)
held_out          bits per byte and tokens of other texts
"""
