"""Cases of losses, matrix functions, searches and cells, as those of ``cases.py``."""

MORE = """
matrix_power | A.matrix_power(x, 5) | f(2, 3, 3)
linalg_matrix_power | A.linalg_matrix_power(x, 6) | f(3, 3)
linalg_det | A.linalg_det(x) | f(2, 3, 3)
max_unpool2d | A.max_unpool2d(*F.max_pool2d(x, 2, return_indices=True), [6, 7]) | f(2, 3, 6, 7)
max_unpool2d | A.max_unpool2d(*F.max_pool2d(x, 2, return_indices=True), [6, 6]) | f(3, 6, 6)
bucketize.Tensor | torch.stack([A.bucketize.Tensor(x, y), A.bucketize.Tensor(x, y, right=True)]) | torch.tensor([[0.0, 1.0, torch.nan], [2.5, -3.0, 9.0]]), torch.tensor([0.0, 1.0, 1.0, 2.5])
bucketize.Tensor | A.bucketize.Tensor(x, y, out_int32=True) | i(3, 4), torch.tensor([-2.5, 0.0, 3.0])
searchsorted.Tensor | A.searchsorted.Tensor(x, y, right=True) | f(2, 5).sort()[0], f(2, 3)
searchsorted.Tensor | A.searchsorted.Tensor(x, y, side='right') | i(5).sort()[0], i(2, 3)
rnn_tanh_cell | A.rnn_tanh_cell(x, y, z, w, z[0], None) | f(2, 3), f(2, 3), f(3, 3), f(3, 3)
rnn_relu_cell | A.rnn_relu_cell(x, y, z, w) | f(2, 3), f(2, 4), f(4, 3), f(4, 4)
linalg_matrix_exp | A.linalg_matrix_exp(x) | f(2, 4, 4) * 3
linalg_matrix_exp | A.linalg_matrix_exp(x) | f(3, 3, dtype='float64') * 0.01
linalg_matrix_exp | A.linalg_matrix_exp(x) | torch.zeros(2, 2)
mse_loss | A.mse_loss(x, y) | f(3, 4), f(3, 4)
mse_loss | A.mse_loss(x, y, 0) | f(3, 4), f(4)
l1_loss | A.l1_loss(x, y, 2) | f(3, 4), f(3, 4)
huber_loss | A.huber_loss(x, y, 1, 0.7) | f(3, 4), f(3, 4)
smooth_l1_loss | A.smooth_l1_loss(x, y, 0, 0.3) | f(3, 4), f(3, 4)
smooth_l1_loss | A.smooth_l1_loss(x, y, 1, 0.0) | f(3, 4), f(3, 4)
binary_cross_entropy | A.binary_cross_entropy(x, y) | torch.tensor([0.0, 0.2, 1.0, 0.7]), p(4)
binary_cross_entropy | A.binary_cross_entropy(x, y, z, 0) | p(3, 4), p(3, 4), p(4)
binary_cross_entropy_with_logits | A.binary_cross_entropy_with_logits(x, y) | f(3, 4) * 60, p(3, 4)
binary_cross_entropy_with_logits | A.binary_cross_entropy_with_logits(x, y, z, w, 2) | f(3, 4), p(3, 4), p(4), p(4)
kl_div | A.kl_div(x, y) | f(4), torch.tensor([0.0, 0.2, 0.5, 0.3])
kl_div | A.kl_div(x, y, 2, log_target=True) | f(3, 4), f(3, 4)
cross_entropy_loss | A.cross_entropy_loss(x, y, z, 1, 2) | f(5, 4), i(5, low=0, high=4), p(4)
cross_entropy_loss | A.cross_entropy_loss(x, y, None, 0) | f(2, 4, 3), i(2, 3, low=0, high=4)
cross_entropy_loss | A.cross_entropy_loss(x, y) | f(4), torch.tensor(2)
nll_loss_nd | A.nll_loss_nd(x, y, None, 2) | f(5, 4), i(5, low=0, high=4)
"""
