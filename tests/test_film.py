"""A film repeats its last frame; it can be cut, joined and taken in pieces."""

import torch

from cascaded.cascade.film import join, moving, still


def frames(*values):
    return torch.tensor(values, dtype=torch.float64).view(-1, 1, 1)


def unfolded(film):
    return film.unfold().flatten().tolist()


def test_a_film_repeats_its_last_frame_and_is_cut_where_it_is_longer():
    film = still(torch.tensor([[1.0], [2.0]]), steps=3)
    assert film.num_frames == 1
    assert film.unfold().squeeze(-1).tolist() == [[1, 2]] * 3
    assert unfolded(moving(frames(1, 2), steps=4)) == [1, 2, 2, 2]
    assert unfolded(moving(frames(1, 2), steps=4).hold(3)) == [1, 2, 2, 2]
    assert unfolded(moving(frames(1, 2, 3), steps=2)) == [1, 2]
    assert unfolded(moving(frames(1, 2, 3)).first(1)) == [1]


def test_in_a_join_the_shorter_film_holds():
    joined = join(moving(frames(1, 2), steps=4), moving(frames(10, 20, 30), steps=4), torch.add)
    assert joined.num_frames == 3
    assert unfolded(joined) == [11, 22, 32, 32]


def test_a_film_in_pieces_is_the_film():
    pieces = list(moving(frames(1, 2, 3), steps=7).pieces(2))
    assert [(piece.start, piece.steps) for piece in pieces] == [(1, 2), (3, 2), (5, 2), (7, 1)]
    assert [value for piece in pieces for value in unfolded(piece)] == [1, 2, 3, 3, 3, 3, 3]
