"""Training of the Unigram tokenizer as Beam pipelines; `finpile_pipelines.unigram.tokenizer` combines them.

texts             the training texts: files, domains, chunks
counting          pretoken counts of each chunk
split_merge       one model per chunk, and the average of the chunk models
partitions        the counts of all text, partitioned by pretoken
seeds             the initial pieces of EM on all text
partitioned_text  the lattices of all text, and the sums over them that EM needs
whole_text        EM on all text, from the merged pieces (refit) or from seeds (global)
heldout           bits per byte and token counts of held-out texts
"""
