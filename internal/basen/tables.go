package basen

// This file contains data. TestTables computes all of it again.

// A radix holds the constants for arithmetic in a base.
type radix struct {
	n     uint64 // the base itself
	shift uint8  // log2(n) if n is a power of two, otherwise 0
	k     uint8  // digits in a chunk: the maximum with n^k <= 2^32
	w64   uint8  // digits of 2^64-1
	w128  uint8  // digits of 2^128-1
	chunk uint64 // n^k
	frac  uint64 // ceil(2^64 / chunk)
	pair  uint64 // chunk^2 if n is not a power of two
	recip uint64 // floor(2^64 / pair) if n is not a power of two
}

// radices has the row of base n at index n. Bases 0 and 1 do not exist. The
// length of the table is a power of two, so that an index can be masked.
var radices = [64]radix{
	2:  {2, 1, 32, 64, 128, 4294967296, 4294967296, 0, 0},
	3:  {3, 0, 20, 41, 81, 3486784401, 5290474533, 12157665459056928801, 1},
	4:  {4, 2, 16, 32, 64, 4294967296, 4294967296, 0, 0},
	5:  {5, 0, 13, 28, 56, 1220703125, 15111572746, 1490116119384765625, 12},
	6:  {6, 0, 12, 25, 50, 2176782336, 8474317239, 4738381338321616896, 3},
	7:  {7, 0, 11, 23, 46, 1977326743, 9329132952, 3909821048582988049, 4},
	8:  {8, 3, 10, 22, 43, 1073741824, 17179869184, 0, 0},
	9:  {9, 0, 10, 21, 41, 3486784401, 5290474533, 12157665459056928801, 1},
	10: {10, 0, 9, 20, 39, 1000000000, 18446744074, 1000000000000000000, 18},
	11: {11, 0, 9, 19, 38, 2357947691, 7823220229, 5559917313492231481, 3},
	12: {12, 0, 8, 18, 36, 429981696, 42901231019, 184884258895036416, 99},
	13: {13, 0, 8, 18, 35, 815730721, 22613766528, 665416609183179841, 27},
	14: {14, 0, 8, 17, 34, 1475789056, 12499580478, 2177953337809371136, 8},
	15: {15, 0, 8, 17, 33, 2562890625, 7197632195, 6568408355712890625, 2},
	16: {16, 4, 8, 16, 32, 4294967296, 4294967296, 0, 0},
	17: {17, 0, 7, 16, 32, 410338673, 44954924524, 168377826559400929, 109},
	18: {18, 0, 7, 16, 31, 612220032, 30130905736, 374813367582081024, 49},
	19: {19, 0, 7, 16, 31, 893871739, 20636902667, 799006685782884121, 23},
	20: {20, 0, 7, 15, 30, 1280000000, 14411518808, 1638400000000000000, 11},
	21: {21, 0, 7, 15, 30, 1801088541, 10241997356, 3243919932521508681, 5},
	22: {22, 0, 7, 15, 29, 2494357888, 7395387873, 6221821273427820544, 2},
	23: {23, 0, 7, 15, 29, 3404825447, 5417823722, 11592836324538749809, 1},
	24: {24, 0, 6, 14, 28, 191102976, 96527769792, 36520347436056576, 505},
	25: {25, 0, 6, 14, 28, 244140625, 75557863726, 59604644775390625, 309},
	26: {26, 0, 6, 14, 28, 308915776, 59714477236, 95428956661682176, 193},
	27: {27, 0, 6, 14, 27, 387420489, 47614270793, 150094635296999121, 122},
	28: {28, 0, 6, 14, 27, 481890304, 38279965214, 232218265089212416, 79},
	29: {29, 0, 6, 14, 27, 594823321, 31012139946, 353814783205469041, 52},
	30: {30, 0, 6, 14, 27, 729000000, 25304175685, 531441000000000000, 34},
	31: {31, 0, 6, 13, 26, 887503681, 20784977538, 787662783788549761, 23},
	32: {32, 5, 6, 13, 26, 1073741824, 17179869184, 0, 0},
	33: {33, 0, 6, 13, 26, 1291467969, 14283547496, 1667889514952984961, 11},
	34: {34, 0, 6, 13, 26, 1544804416, 11941151827, 2386420683693101056, 7},
	35: {35, 0, 6, 13, 25, 1838265625, 10034863201, 3379220508056640625, 5},
	36: {36, 0, 6, 13, 25, 2176782336, 8474317239, 4738381338321616896, 3},
	37: {37, 0, 6, 13, 25, 2565726409, 7189676970, 6582952005840035281, 2},
	38: {38, 0, 6, 13, 25, 3010936384, 6126580479, 9065737908494995456, 2},
	39: {39, 0, 6, 13, 25, 3518743761, 5242423242, 12381557655576425121, 1},
	40: {40, 0, 6, 13, 25, 4096000000, 4503599628, 16777216000000000000, 1},
	41: {41, 0, 5, 12, 24, 115856201, 159221033614, 13422659310152401, 1374},
	42: {42, 0, 5, 12, 24, 130691232, 141147526054, 17080198121677824, 1080},
	43: {43, 0, 5, 12, 24, 147008443, 125480847884, 21611482313284249, 853},
	44: {44, 0, 5, 12, 24, 164916224, 111855241567, 27197360938418176, 678},
	45: {45, 0, 5, 12, 24, 184528125, 99967113814, 34050628916015625, 541},
	46: {46, 0, 5, 12, 24, 205962976, 89563398394, 42420747482776576, 434},
	47: {47, 0, 5, 12, 24, 229345007, 80432289829, 52599132235830049, 350},
	48: {48, 0, 5, 12, 23, 254803968, 72395827344, 64925062108545024, 284},
	49: {49, 0, 5, 12, 23, 282475249, 65303930660, 79792266297612001, 231},
	50: {50, 0, 5, 12, 23, 312500000, 59029581036, 97656250000000000, 188},
	51: {51, 0, 5, 12, 23, 345025251, 53464910236, 119042423827613001, 154},
	52: {52, 0, 5, 12, 23, 380204032, 48518012755, 144555105949057024, 127},
	53: {53, 0, 5, 12, 23, 418195493, 44110336870, 174887470365513049, 105},
	54: {54, 0, 5, 12, 23, 459165024, 40174540981, 210832519264920576, 87},
	55: {55, 0, 5, 12, 23, 503284375, 36652725557, 253295162119140625, 72},
	56: {56, 0, 5, 12, 23, 550731776, 33494969562, 303305489096114176, 60},
	57: {57, 0, 5, 11, 22, 601692057, 30658114661, 362033331456891249, 50},
	58: {58, 0, 5, 11, 22, 656356768, 28104751826, 430804206899405824, 42},
	59: {59, 0, 5, 11, 22, 714924299, 25802373902, 511116753300641401, 36},
	60: {60, 0, 5, 11, 22, 777600000, 23722664704, 604661760000000000, 30},
	61: {61, 0, 5, 11, 22, 844596301, 21840900857, 713342911662882601, 25},
	62: {62, 0, 5, 11, 22, 916132832, 20135446990, 839299365868340224, 21},
}

const no = 0xff // not a digit

// digits62 is the alphabet of Boundary's flake. Like all the others, it is in
// ASCII order.
var digits62 = [64]byte{
	'0', '1', '2', '3', '4', '5', '6', '7', '8', '9', 'A', 'B', 'C', 'D', 'E', 'F',
	'G', 'H', 'I', 'J', 'K', 'L', 'M', 'N', 'O', 'P', 'Q', 'R', 'S', 'T', 'U', 'V',
	'W', 'X', 'Y', 'Z', 'a', 'b', 'c', 'd', 'e', 'f', 'g', 'h', 'i', 'j', 'k', 'l',
	'm', 'n', 'o', 'p', 'q', 'r', 's', 't', 'u', 'v', 'w', 'x', 'y', 'z',
}

// digitsLower is the alphabet of base 16 in lower case.
var digitsLower = [64]byte{
	'0', '1', '2', '3', '4', '5', '6', '7', '8', '9', 'a', 'b', 'c', 'd', 'e', 'f',
}

// digitsCrockford leaves out I, L, O and U:
// https://www.crockford.com/base32.html
var digitsCrockford = [64]byte{
	'0', '1', '2', '3', '4', '5', '6', '7', '8', '9', 'A', 'B', 'C', 'D', 'E', 'F',
	'G', 'H', 'J', 'K', 'M', 'N', 'P', 'Q', 'R', 'S', 'T', 'V', 'W', 'X', 'Y', 'Z',
}

// digitsBitcoin leaves out 0, I, O and l: Bitcoin's src/base58.cpp.
var digitsBitcoin = [64]byte{
	'1', '2', '3', '4', '5', '6', '7', '8', '9', 'A', 'B', 'C', 'D', 'E', 'F', 'G',
	'H', 'J', 'K', 'L', 'M', 'N', 'P', 'Q', 'R', 'S', 'T', 'U', 'V', 'W', 'X', 'Y',
	'Z', 'a', 'b', 'c', 'd', 'e', 'f', 'g', 'h', 'i', 'j', 'k', 'm', 'n', 'o', 'p',
	'q', 'r', 's', 't', 'u', 'v', 'w', 'x', 'y', 'z',
}

// values62 maps digits62 to values, case-sensitively, for bases above 36.
var values62 = [256]uint8{
	no, no, no, no, no, no, no, no, no, no, no, no, no, no, no, no,
	no, no, no, no, no, no, no, no, no, no, no, no, no, no, no, no,
	no, no, no, no, no, no, no, no, no, no, no, no, no, no, no, no,
	0, 1, 2, 3, 4, 5, 6, 7, 8, 9, no, no, no, no, no, no,
	no, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24,
	25, 26, 27, 28, 29, 30, 31, 32, 33, 34, 35, no, no, no, no, no,
	no, 36, 37, 38, 39, 40, 41, 42, 43, 44, 45, 46, 47, 48, 49, 50,
	51, 52, 53, 54, 55, 56, 57, 58, 59, 60, 61, no, no, no, no, no,
	no, no, no, no, no, no, no, no, no, no, no, no, no, no, no, no,
	no, no, no, no, no, no, no, no, no, no, no, no, no, no, no, no,
	no, no, no, no, no, no, no, no, no, no, no, no, no, no, no, no,
	no, no, no, no, no, no, no, no, no, no, no, no, no, no, no, no,
	no, no, no, no, no, no, no, no, no, no, no, no, no, no, no, no,
	no, no, no, no, no, no, no, no, no, no, no, no, no, no, no, no,
	no, no, no, no, no, no, no, no, no, no, no, no, no, no, no, no,
	no, no, no, no, no, no, no, no, no, no, no, no, no, no, no, no,
}

// valuesFold maps digits62 and digitsLower to values, in either case, for bases
// up to 36.
var valuesFold = [256]uint8{
	no, no, no, no, no, no, no, no, no, no, no, no, no, no, no, no,
	no, no, no, no, no, no, no, no, no, no, no, no, no, no, no, no,
	no, no, no, no, no, no, no, no, no, no, no, no, no, no, no, no,
	0, 1, 2, 3, 4, 5, 6, 7, 8, 9, no, no, no, no, no, no,
	no, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24,
	25, 26, 27, 28, 29, 30, 31, 32, 33, 34, 35, no, no, no, no, no,
	no, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24,
	25, 26, 27, 28, 29, 30, 31, 32, 33, 34, 35, no, no, no, no, no,
	no, no, no, no, no, no, no, no, no, no, no, no, no, no, no, no,
	no, no, no, no, no, no, no, no, no, no, no, no, no, no, no, no,
	no, no, no, no, no, no, no, no, no, no, no, no, no, no, no, no,
	no, no, no, no, no, no, no, no, no, no, no, no, no, no, no, no,
	no, no, no, no, no, no, no, no, no, no, no, no, no, no, no, no,
	no, no, no, no, no, no, no, no, no, no, no, no, no, no, no, no,
	no, no, no, no, no, no, no, no, no, no, no, no, no, no, no, no,
	no, no, no, no, no, no, no, no, no, no, no, no, no, no, no, no,
}

// valuesCrockford maps digitsCrockford to values, in either case.
var valuesCrockford = [256]uint8{
	no, no, no, no, no, no, no, no, no, no, no, no, no, no, no, no,
	no, no, no, no, no, no, no, no, no, no, no, no, no, no, no, no,
	no, no, no, no, no, no, no, no, no, no, no, no, no, no, no, no,
	0, 1, 2, 3, 4, 5, 6, 7, 8, 9, no, no, no, no, no, no,
	no, 10, 11, 12, 13, 14, 15, 16, 17, no, 18, 19, no, 20, 21, no,
	22, 23, 24, 25, 26, no, 27, 28, 29, 30, 31, no, no, no, no, no,
	no, 10, 11, 12, 13, 14, 15, 16, 17, no, 18, 19, no, 20, 21, no,
	22, 23, 24, 25, 26, no, 27, 28, 29, 30, 31, no, no, no, no, no,
	no, no, no, no, no, no, no, no, no, no, no, no, no, no, no, no,
	no, no, no, no, no, no, no, no, no, no, no, no, no, no, no, no,
	no, no, no, no, no, no, no, no, no, no, no, no, no, no, no, no,
	no, no, no, no, no, no, no, no, no, no, no, no, no, no, no, no,
	no, no, no, no, no, no, no, no, no, no, no, no, no, no, no, no,
	no, no, no, no, no, no, no, no, no, no, no, no, no, no, no, no,
	no, no, no, no, no, no, no, no, no, no, no, no, no, no, no, no,
	no, no, no, no, no, no, no, no, no, no, no, no, no, no, no, no,
}

// valuesBitcoin maps digitsBitcoin to values, case-sensitively.
var valuesBitcoin = [256]uint8{
	no, no, no, no, no, no, no, no, no, no, no, no, no, no, no, no,
	no, no, no, no, no, no, no, no, no, no, no, no, no, no, no, no,
	no, no, no, no, no, no, no, no, no, no, no, no, no, no, no, no,
	no, 0, 1, 2, 3, 4, 5, 6, 7, 8, no, no, no, no, no, no,
	no, 9, 10, 11, 12, 13, 14, 15, 16, no, 17, 18, 19, 20, 21, no,
	22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 32, no, no, no, no, no,
	no, 33, 34, 35, 36, 37, 38, 39, 40, 41, 42, 43, no, 44, 45, 46,
	47, 48, 49, 50, 51, 52, 53, 54, 55, 56, 57, no, no, no, no, no,
	no, no, no, no, no, no, no, no, no, no, no, no, no, no, no, no,
	no, no, no, no, no, no, no, no, no, no, no, no, no, no, no, no,
	no, no, no, no, no, no, no, no, no, no, no, no, no, no, no, no,
	no, no, no, no, no, no, no, no, no, no, no, no, no, no, no, no,
	no, no, no, no, no, no, no, no, no, no, no, no, no, no, no, no,
	no, no, no, no, no, no, no, no, no, no, no, no, no, no, no, no,
	no, no, no, no, no, no, no, no, no, no, no, no, no, no, no, no,
	no, no, no, no, no, no, no, no, no, no, no, no, no, no, no, no,
}
